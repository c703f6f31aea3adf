#include "delegates/kernels/kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <new>

#include "core/graph/dtype.h"
#include "core/graph/tensor.h"
#include "delegates/kernels/kernel_host.h"

namespace msrt {
namespace {

// Typical cores; they only have to rank a kernel without its own cost function among others.
constexpr double kFlopsPerCore = 90e9, kBytesPerCore = 20e9, kLaunchSeconds = 1e-6;
constexpr double kMaxSeconds = 1e9;  // the host rejects greater estimates

struct KernelsDelegate {
  std::vector<RegisteredKernel> kernels;
  // From "domain op" to the indices of its kernels.
  std::map<std::string, std::vector<uint32_t>, std::less<>> by_op;
};

std::string KeyOf(std::string_view domain, std::string_view op) { return StrCat(domain, " ", op); }

// A kernel that was chosen for a node.
struct CompiledKernel {
  CompiledKernel(const RegisteredKernel& k, const msrt_host_api* h, const msrt_node_view* n)
      : kernel(k), host(h, k.name), node(n) {}
  CompiledKernel(const CompiledKernel&) = delete;
  CompiledKernel& operator=(const CompiledKernel&) = delete;
  ~CompiledKernel() {
    if (packed != nullptr) kernel.desc.packed_destroy(kernel.desc.user, packed);
  }
  const RegisteredKernel& kernel;  // owned by the delegate, which outlives this object
  KernelHost host;
  const msrt_node_view* node;
  std::vector<msrt_layout> input_layouts, output_layouts;
  void* packed = nullptr;
};

struct BoundKernel {
  const CompiledKernel* compiled;
  std::vector<msrt_shape> inputs, outputs;
  msrt_node_view node;  // the compiled one, with the attributes of the piece
  std::vector<msrt_attr_view> attrs;
};

// Replaces the attributes in which the piece differs.
void SetAttrs(const msrt_bound_node& piece, BoundKernel* bound) {
  bound->node = *bound->compiled->node;
  if (piece.attr_count == 0) return;
  bound->attrs.assign(bound->node.attrs, bound->node.attrs + bound->node.attr_count);
  for (size_t i = 0; i < piece.attr_count; ++i) {
    const msrt_attr_view& attr = piece.attrs[i];
    std::erase_if(bound->attrs,
                  [&](const msrt_attr_view& a) { return std::string_view(a.name) == attr.name; });
    if (attr.count != 0 || (attr.flags & MSRT_ATTR_IS_DEFAULT) == 0) bound->attrs.push_back(attr);
  }
  bound->node.attrs = bound->attrs.data();
  bound->node.attr_count = bound->attrs.size();
}

// No exception may cross the C interface.
template <typename F>
msrt_status Guarded(F&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

// Calls a callback that returns no status; returns the exception that it threw as a status.
// Lack of memory is not the callback's fault alone, so that exception is passed on.
template <typename Call>
Status AskCallback(const Call& call) {
  Status thrown = CatchAsStatus(call);
  if (thrown.code() == Code::kOutOfMemory) throw std::bad_alloc();
  return thrown;
}

// Calls visit(value) for every value of the node that is not omitted, inputs first.
template <typename F>
void ForEachValue(const msrt_node_view& node, F&& visit) {
  for (size_t i = 0; i < node.input_count; ++i) {
    if (node.inputs[i].id >= 0) visit(node.inputs[i]);
  }
  for (size_t i = 0; i < node.output_count; ++i) {
    if (node.outputs[i].id >= 0) visit(node.outputs[i]);
  }
}

bool CanHaveLayout(const msrt_value_view& value) {
  return value.id >= 0 && value.constant == nullptr && value.declared.rank >= 3 &&
         value.declared.rank <= 5;
}

// Returns why the kernel cannot run the node; empty if it can.
std::string Refusal(const RegisteredKernel& kernel, const msrt_node_view& node) {
  const msrt_kernel_desc& d = kernel.desc;
  if (d.version != 0 && node.version > d.version)
    return StrCat("it has version ", d.version, " of the op, the node ", node.version);
  std::string wrong_type;
  ForEachValue(node, [&](const msrt_value_view& value) {
    const msrt_dtype dtype = value.declared.dtype;
    if (d.types != 0 && wrong_type.empty() && (dtype <= 0 || (d.types & MSRT_BIT(dtype)) == 0)) {
      wrong_type = StrCat("it does not take ",
                          dtype <= 0 ? "what is no tensor" : DTypeName(static_cast<DType>(dtype)));
    }
  });
  if (!wrong_type.empty()) return wrong_type;
  if (d.accepts == nullptr) return {};
  const char* reason = nullptr;
  bool accepted = false;
  const Status status = AskCallback([&] { accepted = d.accepts(d.user, &node, &reason) != 0; });
  if (!status.ok()) return StrCat("accepts: ", status.message());
  if (accepted) return {};
  return reason == nullptr || *reason == '\0' ? "it does not take this node" : reason;
}

double BytesOf(const msrt_shape& shape) {
  double bytes = shape.dtype <= 0 ? 0 : BitsOf(static_cast<DType>(shape.dtype)) / 8.0;
  for (int32_t i = 0; i < shape.rank; ++i)
    bytes *= static_cast<double>(std::max<int64_t>(shape.dims[i], 1));
  return bytes;
}

// Returns the kernel's own estimate, or an error if the estimate is not a valid time.
Result<double> OwnSeconds(const RegisteredKernel& kernel, const msrt_host_api& host,
                          const msrt_node_view& node) {
  double seconds = 0;
  MSRT_RETURN_IF_ERROR(AskCallback([&] {
                         seconds = kernel.desc.seconds(kernel.desc.user, &host, &node);
                       }).Within("seconds"));
  if (!(seconds >= 0 && seconds < kMaxSeconds))
    return DelegateError("its seconds are ", seconds, ", must be from 0 to ", kMaxSeconds);
  return seconds;
}

Result<double> EstimatedSeconds(const RegisteredKernel& kernel, const msrt_host_api& host,
                                const msrt_node_view& node) {
  if (kernel.desc.seconds != nullptr) return OwnSeconds(kernel, host, node);
  double bytes = node.bytes;
  if (bytes == 0)
    ForEachValue(node, [&](const msrt_value_view& value) { bytes += BytesOf(value.typical); });
  const double flops_rate =
      host.flops_per_second > 0 ? host.flops_per_second : kFlopsPerCore * host.threads;
  const double bytes_rate =
      host.bytes_per_second > 0 ? host.bytes_per_second : kBytesPerCore * host.threads;
  return kLaunchSeconds + std::max(node.flops / (0.5 * flops_rate), bytes / bytes_rate);
}

// Returns `layout` for the tensors that can have it and plain for the others.
std::vector<msrt_layout> LayoutsOf(const msrt_value_view* values, size_t count,
                                   msrt_layout layout) {
  std::vector<msrt_layout> layouts(count, MSRT_LAYOUT_PLAIN);
  for (size_t i = 0; i < count; ++i) {
    if (CanHaveLayout(values[i])) layouts[i] = layout;
  }
  return layouts;
}

// Offers one candidate for every layout that the kernel runs in and that some tensor can have.
void Offer(const RegisteredKernel& kernel, uint32_t index, uint32_t n, const msrt_node_view& node,
           const msrt_host_api& host, const msrt_query_sink& sink) {
  bool any_layout = false;
  ForEachValue(node, [&](const msrt_value_view& value) { any_layout |= CanHaveLayout(value); });
  const uint32_t all = kernel.desc.layouts == 0 ? MSRT_BIT(MSRT_LAYOUT_PLAIN) : kernel.desc.layouts;
  const uint32_t layouts = any_layout ? all : all & MSRT_BIT(MSRT_LAYOUT_PLAIN);
  if (layouts == 0) {
    sink.refuse(sink.sink, n,
                StrCat(kernel.name, ": no tensor of the node can have the layouts that it runs in")
                    .c_str());
    return;
  }
  std::vector<msrt_in_place> in_place;
  for (const msrt_in_place& pair : kernel.in_place) {
    if (pair.input < node.input_count && pair.output < node.output_count) in_place.push_back(pair);
  }
  const Result<double> seconds = EstimatedSeconds(kernel, host, node);
  if (!seconds.ok())
    return sink.refuse(sink.sink, n, StrCat(kernel.name, ": ", seconds.status().message()).c_str());
  for (msrt_layout layout = MSRT_LAYOUT_PLAIN; IsLayout(layout); ++layout) {
    if ((layouts & MSRT_BIT(layout)) == 0) continue;
    const std::vector<msrt_layout> inputs = LayoutsOf(node.inputs, node.input_count, layout);
    const std::vector<msrt_layout> outputs = LayoutsOf(node.outputs, node.output_count, layout);
    msrt_candidate c = MSRT_INIT(msrt_candidate);
    c.arithmetic = kernel.arithmetic.empty() ? nullptr : kernel.arithmetic.c_str();
    c.nodes = &n;
    c.node_count = 1;
    c.input_layouts = inputs.data();
    c.output_layouts = outputs.data();
    c.input_count = inputs.size();
    c.output_count = outputs.size();
    c.seconds = *seconds;
    c.algorithm = kernel.name.c_str();
    c.in_place = in_place.data();
    c.in_place_count = in_place.size();
    c.tag = index;
    sink.candidate(sink.sink, &c);
  }
}

msrt_status Query(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                  const msrt_query_sink* sink) {
  return Guarded([&]() -> msrt_status {
    const auto& delegate = *static_cast<const KernelsDelegate*>(self);
    for (uint32_t n = 0; n < graph->node_count; ++n) {
      const msrt_node_view& node = *graph->node(graph->graph, n);
      const auto found = delegate.by_op.find(KeyOf(node.domain, node.op));
      if (found == delegate.by_op.end()) continue;
      for (uint32_t index : found->second) {
        const RegisteredKernel& kernel = delegate.kernels[index];
        const std::string refusal = Refusal(kernel, node);
        if (refusal.empty()) Offer(kernel, index, n, node, *host, *sink);
        else sink->refuse(sink->sink, n, StrCat(kernel.name, ": ", refusal).c_str());
      }
    }
    return MSRT_OK;
  });
}

msrt_status Compile(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                    const msrt_candidate* c, void** out) {
  return Guarded([&]() -> msrt_status {
    const auto& delegate = *static_cast<const KernelsDelegate*>(self);
    auto compiled = std::make_unique<CompiledKernel>(delegate.kernels[c->tag], host,
                                                     graph->node(graph->graph, c->nodes[0]));
    compiled->input_layouts.assign(c->input_layouts, c->input_layouts + c->input_count);
    compiled->output_layouts.assign(c->output_layouts, c->output_layouts + c->output_count);
    const msrt_kernel_desc& desc = compiled->kernel.desc;
    if (desc.pack != nullptr) {
      const msrt_status code = compiled->host.Call([&](const msrt_host_api* own) {
        return desc.pack(desc.user, own, compiled->node, &compiled->packed);
      });
      if (code != MSRT_OK) {
        compiled->packed = nullptr;  // a failed call leaves nothing to destroy
        return code;
      }
    }
    *out = compiled.release();
    return MSRT_OK;
  });
}

msrt_status Bind(void*, const msrt_host_api*, void* kernel, const msrt_bound_node* nodes, size_t,
                 void** out) {
  return Guarded([&]() -> msrt_status {
    const msrt_bound_node& node = nodes[0];
    auto bound = std::make_unique<BoundKernel>();
    bound->compiled = static_cast<const CompiledKernel*>(kernel);
    bound->inputs.assign(node.inputs, node.inputs + node.input_count);
    bound->outputs.assign(node.outputs, node.outputs + node.output_count);
    SetAttrs(node, bound.get());
    *out = bound.release();
    return MSRT_OK;
  });
}

msrt_status Run(void*, void* handle, const msrt_run_args* args) {
  const auto& bound = *static_cast<const BoundKernel*>(handle);
  const CompiledKernel& compiled = *bound.compiled;
  const msrt_kernel_desc& desc = compiled.kernel.desc;
  msrt_kernel_args a = MSRT_INIT(msrt_kernel_args);
  a.node = &bound.node;
  a.input_shapes = bound.inputs.data();
  a.input_layouts = compiled.input_layouts.data();
  a.inputs = args->inputs;
  a.input_count = args->input_count;
  a.output_shapes = bound.outputs.data();
  a.output_layouts = compiled.output_layouts.data();
  a.outputs = args->outputs;
  a.output_count = args->output_count;
  a.scratch = args->scratch;
  return compiled.host.Call([&](const msrt_host_api* own) {
    a.host = own;
    return desc.run(desc.user, compiled.packed, &a);
  });
}

}  // namespace

sdk::ExportedDelegate MakeKernelsDelegate(std::span<const RegisteredKernel> kernels) {
  auto delegate = std::make_unique<KernelsDelegate>();
  delegate->kernels.assign(kernels.begin(), kernels.end());
  for (uint32_t i = 0; i < kernels.size(); ++i)
    delegate->by_op[KeyOf(kernels[i].domain, kernels[i].op)].push_back(i);
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = "kernels";
  api.query = Query;
  api.compile = Compile;
  api.kernel_destroy = [](void*, void* kernel) { delete static_cast<CompiledKernel*>(kernel); };
  api.kernel_bytes = [](void*, const void* kernel) -> size_t {
    const auto& compiled = *static_cast<const CompiledKernel*>(kernel);
    const msrt_kernel_desc& desc = compiled.kernel.desc;
    return compiled.packed == nullptr || desc.packed_bytes == nullptr
               ? 0
               : desc.packed_bytes(desc.user, compiled.packed);
  };
  api.bind = Bind;
  api.bound_destroy = [](void*, void* bound) { delete static_cast<BoundKernel*>(bound); };
  api.bound_bytes = [](void*, const void* handle) {
    const auto& bound = *static_cast<const BoundKernel*>(handle);
    return (bound.inputs.size() + bound.outputs.size()) * sizeof(msrt_shape);
  };
  api.run = Run;
  api.destroy = [](void* self) { delete static_cast<KernelsDelegate*>(self); };
  return {api, delegate.release()};
}

}  // namespace msrt
