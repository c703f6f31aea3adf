#include "tests/examples/accelerator/delegate.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "delegates/sdk/graph_image.h"
#include "tests/examples/accelerator/chain.h"
#include "tests/examples/accelerator/inner.h"
#include "tests/examples/accelerator/kernel.h"
#include "tests/examples/accelerator/owned_plan.h"

namespace accelerator {
namespace {

// No exception may pass the C interface.
template <typename F>
msrt_status Guarded(const msrt_host_api* host, F&& body) {
  try {
    return Tell(host, body());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

// Returns the memory that a chain needs in addition to its inputs and outputs.
size_t BytesInside(const msrt_graph_view& graph, const Chain& chain) {
  size_t bytes = 0;
  for (size_t n = 0; n + 1 < chain.size(); ++n) {
    const msrt_node_view& node = NodeAt(graph, chain[n]);
    for (size_t i = 0; i < node.output_count; ++i) {
      if (node.outputs[i].id >= 0) bytes += msrt::sdk::TypeOf(node.outputs[i].typical).bytes();
    }
  }
  return bytes;
}

// All tensors are plain, so no layouts are given. Enqueueing a kernel is cheaper than waking the
// stream.
msrt_candidate CandidateOf(const Accelerator& a, const uint32_t* nodes, size_t node_count,
                           double inner_seconds) {
  msrt_candidate c = MSRT_INIT(msrt_candidate);
  c.nodes = nodes;
  c.node_count = node_count;
  c.seconds = a.options.launch_us * 1e-6 / 5 + inner_seconds / a.options.speed;
  c.device = MSRT_ANY_DEVICE;
  if (a.options.strides) c.strided_inputs = c.strided_outputs = ~UINT64_C(0);
  return c;
}

// Ops that compute the same in any order of elements, and are therefore offered in another layout.
bool IsChannelsLast(const Options& options, const msrt_node_view& node) {
  const std::string_view op = node.op;
  return options.channels_last && node.input_count == 1 && node.inputs[0].declared.rank == 4 &&
         (op == "Relu" || op == "Neg" || op == "Exp");
}

void Offer(const Accelerator& a, const msrt_graph_view& graph, const Chain& chain,
           const std::vector<InnerOffer>& inner, const msrt_query_sink& sink) {
  double seconds = 0;
  for (uint32_t n : chain) seconds += inner[n].seconds;
  const Wiring wiring = WiringOf(graph, chain.data(), chain.size());
  msrt_candidate c = CandidateOf(a, chain.data(), chain.size(), seconds);
  c.input_count = wiring.input_count;
  c.output_count = wiring.output_count;
  c.workspace_bytes = BytesInside(graph, chain);
  c.algorithm = chain.size() == 1 ? "emulated" : "emulated chain";
  const std::string& arithmetic = inner[chain[0]].arithmetic;
  const bool same = std::all_of(chain.begin(), chain.end(),
                                [&](uint32_t n) { return inner[n].arithmetic == arithmetic; });
  if (same && !arithmetic.empty()) c.arithmetic = arithmetic.c_str();
  if (chain.size() == 1) {
    c.in_place = inner[chain[0]].in_place.data();
    c.in_place_count = inner[chain[0]].in_place.size();
  }
  const msrt_layout last = MSRT_LAYOUT_CHANNELS_LAST;
  const bool converted = std::any_of(chain.begin(), chain.end(), [&](uint32_t n) {
    return IsChannelsLast(a.options, NodeAt(graph, n));
  });
  if (converted && chain.size() > 1) return;
  if (converted) c.input_layouts = c.output_layouts = &last;
  sink.candidate(sink.sink, &c);
}

// Control flow with the graphs that it calls.
void OfferWhole(const Accelerator& a, const msrt_host_api* host, const msrt_graph_view& graph,
                uint32_t n, const msrt_query_sink& sink) {
  const OwnedPlan plan = PlanOwned(a, host, graph, n);
  if (!plan.refused.empty()) return sink.refuse(sink.sink, n, plan.refused.c_str());
  msrt_candidate c = CandidateOf(a, &n, 1, plan.seconds);
  c.input_count = NodeAt(graph, n).input_count;
  c.output_count = NodeAt(graph, n).output_count;
  c.workspace_bytes = plan.arena_bytes;
  c.algorithm = "emulated whole";
  sink.candidate(sink.sink, &c);
}

msrt_status Query(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                  const msrt_query_sink* sink) {
  return Guarded(host, [&]() -> Failure {
    const Accelerator& a = Of(self);
    const std::vector<InnerOffer> inner = AskInner(a, host, *graph, sink);
    std::vector<bool> supported(graph->node_count);
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      supported[n] = inner[n].seconds >= 0;
      if (supported[n]) Offer(a, *graph, {n}, inner, *sink);
      else if (IsOwned(a.options, NodeAt(*graph, n))) OfferWhole(a, host, *graph, n, *sink);
    }
    for (const Chain& chain : FindChains(*graph, supported, a.options.chain))
      Offer(a, *graph, chain, inner, *sink);
    return {};
  });
}

msrt_status Compile(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                    const msrt_candidate* candidate, void** out) {
  return Guarded(host, [&] {
    Accelerator& a = Of(self);
    std::unique_ptr<Kernel> kernel;
    Failure failure = a.faults.OnCompile();
    const auto make =
        IsOwned(a.options, NodeAt(*graph, candidate->nodes[0])) ? MakeOwnedKernel : MakeChainKernel;
    if (failure.ok()) failure = make(&a, host, *graph, *candidate, &kernel);
    *out = kernel.release();
    return failure;
  });
}

msrt_status Bind(void*, const msrt_host_api* host, void* kernel, const msrt_bound_node* nodes,
                 size_t, void** out) {
  return Guarded(host, [&] {
    std::unique_ptr<BoundKernel> bound;
    Failure failure = static_cast<const Kernel*>(kernel)->Bind(host, nodes, &bound);
    *out = bound.release();
    return failure;
  });
}

}  // namespace

msrt_delegate_api DelegateApi(const std::vector<const char*>& devices) {
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "accelerator";
  api.query = Query;
  api.compile = Compile;
  api.kernel_destroy = [](void*, void* kernel) { delete static_cast<Kernel*>(kernel); };
  api.kernel_bytes = [](void*, const void* kernel) {
    return static_cast<const Kernel*>(kernel)->bytes();
  };
  api.bind = Bind;
  api.bound_destroy = [](void*, void* bound) { delete static_cast<BoundKernel*>(bound); };
  api.bound_bytes = [](void*, const void* bound) {
    return static_cast<const BoundKernel*>(bound)->bytes();
  };
  api.prepare = [](void*, const msrt_host_api* host, void* bound) {
    return Guarded(host, [&] { return static_cast<const BoundKernel*>(bound)->Prepare(host); });
  };
  api.run = [](void*, void* bound, const msrt_run_args* args) {
    return Guarded(args->host,
                   [&] { return static_cast<const BoundKernel*>(bound)->Enqueue(*args); });
  };
  api.devices = devices.data();
  api.device_count = devices.size();
  api.destroy = DestroyHandle;
  return api;
}

}  // namespace accelerator
