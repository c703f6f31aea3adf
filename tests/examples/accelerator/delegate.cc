#include "tests/examples/accelerator/delegate.h"

#include <algorithm>
#include <new>

#include "delegates/sdk/graph_image.h"
#include "tests/examples/accelerator/kernel.h"

namespace accelerator {
namespace {

// Nothing may unwind through the C doors.
template <typename F>
msrt_status Guarded(const msrt_host_api* host, F&& body) {
  try {
    return Tell(host, body());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

// What the inner delegate answers: the estimate for each node that it takes. What it refuses is refused on the spot.
struct InnerAnswer {
  const msrt_query_sink* outer;
  std::vector<double> seconds;  // by node; negative: refused
};

InnerAnswer AskInner(const Accelerator& a, const msrt_host_api* host, const msrt_graph_view& graph, const msrt_query_sink* sink) {
  InnerAnswer answer{sink, std::vector<double>(graph.node_count, -1)};
  msrt_query_sink inner = MSRT_INIT(msrt_query_sink);
  inner.sink = &answer;
  inner.candidate = [](void* self, const msrt_candidate* c) { static_cast<InnerAnswer*>(self)->seconds[c->nodes[0]] = c->seconds; };
  inner.refuse = [](void* self, uint32_t node, const char* reason) {
    const msrt_query_sink* outer = static_cast<InnerAnswer*>(self)->outer;
    outer->refuse(outer->sink, node, reason);
  };
  if (a.inner.api.query(a.inner.self, host, &graph, &inner) != MSRT_OK) std::fill(answer.seconds.begin(), answer.seconds.end(), -1);
  return answer;
}

// The memory that a chain needs beyond its inputs and outputs.
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

void Offer(const Accelerator& a, const msrt_graph_view& graph, const Chain& chain, const InnerAnswer& inner, const msrt_query_sink& sink) {
  const Wiring wiring = WiringOf(graph, chain.data(), chain.size());
  msrt_candidate c = MSRT_INIT(msrt_candidate);
  c.exact = 1;
  c.nodes = chain.data();
  c.node_count = chain.size();
  c.input_count = wiring.input_count;  // all plain, so no layouts are given
  c.output_count = wiring.output_count;
  c.seconds = a.options.launch_us * 1e-6 / 5;  // to enqueue a kernel is cheaper than to wake the stream
  for (uint32_t n : chain) c.seconds += inner.seconds[n] / a.options.speed;
  c.workspace_bytes = BytesInside(graph, chain);
  c.algorithm = chain.size() == 1 ? "emulated" : "emulated chain";
  sink.candidate(sink.sink, &c);
}

msrt_status Query(void* self, const msrt_host_api* host, const msrt_graph_view* graph, const msrt_query_sink* sink) {
  return Guarded(host, [&]() -> Failure {
    const Accelerator& a = Of(self);
    const InnerAnswer inner = AskInner(a, host, *graph, sink);
    std::vector<bool> supported(graph->node_count);
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      if (inner.seconds[n] < 0) continue;
      const std::string op = NodeAt(*graph, n).op;
      supported[n] = std::find(a.options.unsupported.begin(), a.options.unsupported.end(), op) == a.options.unsupported.end();
      if (supported[n]) Offer(a, *graph, {n}, inner, *sink);
      else sink->refuse(sink->sink, n, ("the accelerator has no " + op).c_str());
    }
    for (const Chain& chain : FindChains(*graph, supported, a.options.chain)) Offer(a, *graph, chain, inner, *sink);
    return {};
  });
}

msrt_status Compile(void* self, const msrt_host_api* host, const msrt_graph_view* graph, const msrt_candidate* candidate, void** out) {
  return Guarded(host, [&] {
    std::unique_ptr<Kernel> kernel;
    Failure failure = Kernel::Make(&Of(self), host, *graph, *candidate, &kernel);
    *out = kernel.release();
    return failure;
  });
}

msrt_status Bind(void*, const msrt_host_api* host, void* kernel, const msrt_bound_node* nodes, size_t, void** out) {
  return Guarded(host, [&] {
    std::unique_ptr<BoundKernel> bound;
    Failure failure = BoundKernel::Make(*static_cast<Kernel*>(kernel), host, nodes, &bound);
    *out = bound.release();
    return failure;
  });
}

}  // namespace

msrt_delegate_api DelegateApi(const msrt_device_api* device) {
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "accelerator";
  api.query = Query;
  api.compile = Compile;
  api.kernel_destroy = [](void*, void* kernel) { delete static_cast<Kernel*>(kernel); };
  api.kernel_bytes = [](void*, const void* kernel) { return static_cast<const Kernel*>(kernel)->bytes(); };
  api.bind = Bind;
  api.bound_destroy = [](void*, void* bound) { delete static_cast<BoundKernel*>(bound); };
  api.bound_bytes = [](void*, const void* bound) { return static_cast<const BoundKernel*>(bound)->bytes(); };
  api.prepare = [](void*, const msrt_host_api* host, void* bound) {
    return Guarded(host, [&] { return static_cast<const BoundKernel*>(bound)->Prepare(host); });
  };
  api.run = [](void*, void* bound, const msrt_run_args* args) {
    return Guarded(args->host, [&] { return static_cast<const BoundKernel*>(bound)->Enqueue(*args); });
  };
  api.device = device;
  api.destroy = [](void* self) { delete &Of(self); };
  return api;
}

}  // namespace accelerator
