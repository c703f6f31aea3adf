#include "delegates/sdk/export.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/base/copy_known_fields.h"
#include "delegates/sdk/border.h"
#include "delegates/sdk/graph_image.h"

namespace msrt::sdk {
namespace {

static_assert(kAnyDevice == MSRT_ANY_DEVICE);

msrt_status Report(const msrt_host_api& host, const Status& status) {
  // An error that came from the host and is passed back already has its text.
  if (!status.ok() && !status.message().empty()) host.fail(host.host, status.message().c_str());
  return static_cast<msrt_status>(status.code());
}

// No exception may cross the C interface.
template <typename F>
msrt_status Guarded(const msrt_host_api& host, F&& body) {
  try {
    return Report(host, body());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

class HostAllocator final : public Allocator {
 public:
  explicit HostAllocator(const msrt_host_api* host) : host_(host) {}
  void* Allocate(size_t bytes, size_t alignment) noexcept override {
    return host_->allocate(host_->host, bytes, alignment);
  }
  void Free(void* pointer, size_t bytes, size_t alignment) noexcept override {
    host_->deallocate(host_->host, pointer, bytes, alignment);
  }

 private:
  const msrt_host_api* host_;
};

class HostParallel final : public ParallelFor {
 public:
  explicit HostParallel(const msrt_host_api* host) : host_(host) {}
  int threads() const override { return host_->threads; }
  Status Run(int64_t count, FunctionRef<void(int64_t)> task) override {
    const auto call = [](void* context, int64_t index) {
      (*static_cast<FunctionRef<void(int64_t)>*>(context))(index);
    };
    const auto code = static_cast<Code>(host_->parallel_for(host_->host, count, call, &task));
    return code == Code::kOk ? OkStatus() : Status(code, "");
  }

 private:
  const msrt_host_api* host_;
};

msrt_packing NamesOf(const Packing& packing) {
  msrt_packing named = MSRT_INIT(msrt_packing);
  named.version = packing.version;
  named.kernel = packing.kernel.c_str();
  named.isa = packing.isa.c_str();
  named.block = packing.block;
  return named;
}

class HostForms final : public FormStore {
 public:
  explicit HostForms(const msrt_host_api* host) : host_(CopyKnownFields(*host)) {}
  const void* Find(const void* constant, const Packing& packing, size_t bytes) const override {
    const msrt_packing named = NamesOf(packing);
    return host_.find_packed == nullptr ? nullptr
                                        : host_.find_packed(host_.host, constant, &named, bytes);
  }
  Status Keep(const void* constant, const Packing& packing,
              std::span<const std::byte> data) const override {
    if (host_.keep_packed == nullptr) return OkStatus();
    const msrt_packing named = NamesOf(packing);
    const auto code = static_cast<Code>(
        host_.keep_packed(host_.host, constant, &named, data.data(), data.size()));
    return code == Code::kOk ? OkStatus() : Status(code, "");
  }

 private:
  const msrt_host_api host_;  // the fields that this build knows
};

class HostScratch final : public Scratch {
 public:
  explicit HostScratch(const msrt_scratch* scratch) : scratch_(scratch) {}
  Result<void*> Get(size_t bytes) override {
    void* memory = scratch_->get(scratch_->context, bytes);
    if (memory == nullptr) return LimitExceeded("there is no scratch memory of ", bytes, " bytes");
    return memory;
  }

 private:
  const msrt_scratch* scratch_;
};

class HostInputForms final : public InputForms {
 public:
  explicit HostInputForms(const msrt_run_args& args) : args_(args) {}
  Result<const void*> Get(size_t input, const Packing& packing, size_t bytes,
                          FunctionRef<Status(std::byte*)> pack) override {
    struct Call {
      FunctionRef<Status(std::byte*)>& pack;
      const msrt_host_api& host;
    } call{pack, *args_.host};
    const auto run = [](void* user, void* to) {
      auto& c = *static_cast<Call*>(user);
      return Guarded(c.host, [&] { return c.pack(static_cast<std::byte*>(to)); });
    };
    const msrt_packing named = NamesOf(packing);
    const void* form = nullptr;
    const auto code = static_cast<Code>(
        args_.packed_input(args_.packed_context, input, &named, bytes, run, &call, &form));
    if (code != Code::kOk) return Status(code, "");
    return form;
  }

 private:
  const msrt_run_args& args_;
};

Candidate CandidateOf(const msrt_candidate& c) {
  Candidate out;
  out.node = c.nodes[0];
  if (c.node_count > 1) out.nodes.assign(c.nodes, c.nodes + c.node_count);
  const auto layouts = [](const msrt_layout* l, size_t count) {
    std::vector<Layout> v(count, Layout::kPlain);
    for (size_t i = 0; l != nullptr && i < count; ++i) v[i] = static_cast<Layout>(l[i]);
    return v;
  };
  out.input_layouts = layouts(c.input_layouts, c.input_count);
  out.output_layouts = layouts(c.output_layouts, c.output_count);
  out.seconds = c.seconds;
  if (c.arithmetic != nullptr) out.arithmetic = c.arithmetic;
  out.algorithm = c.algorithm;
  out.packs_constants = c.packs_constants != 0;
  out.reduced = c.reduced != 0;
  out.tag = c.tag;
  out.device = c.device;
  out.workspace_bytes = c.workspace_bytes;
  out.asynchronous = c.asynchronous != 0;
  out.strided_inputs = c.strided_inputs;
  out.strided_outputs = c.strided_outputs;
  const auto cut = [](int64_t g) { return g > 1; };
  if (std::any_of(std::begin(c.granule), std::end(c.granule), cut))
    out.granule = Dims(std::span<const int64_t>(c.granule));
  return out;
}

// A compiled candidate with everything it points to. Members are destroyed from last to first, so
// the kernel goes before the graph that it points into.
struct ExportedKernel {
  ExportedKernel(const msrt_host_api* host, const msrt_graph_view& graph, const msrt_candidate& c)
      : allocator(host),
        parallel(host),
        forms(host),
        image(graph, *host),
        candidate(CandidateOf(c)),
        border(BorderOf(graph, {c.nodes, c.node_count})) {
    for (size_t n = 0; n < c.node_count; ++n) ops.push_back(image.node(c.nodes[n]).op);
  }
  HostAllocator allocator;
  HostParallel parallel;
  HostForms forms;
  GraphImage image;
  Candidate candidate;
  const Border border;
  std::vector<const OpView*> ops;  // in image
  std::unique_ptr<Kernel> kernel;
};

// A bound kernel with the views of its inputs and outputs, which lack only the data, and what they
// point to.
struct ExportedBound {
  std::optional<AttrImage> attrs;  // those of a piece, which its kernel may point to
  std::vector<msrt_strides> strides;
  std::vector<TensorView> views;
  size_t inputs = 0;
  std::unique_ptr<BoundKernel> kernel;
};

// A node at bind: its types, its known values, and an OpView over them.
struct BoundNode {
  BoundNode(const OpView& op, const msrt_bound_node& node) {
    types.reserve(node.input_count + node.output_count);
    pointers.reserve(types.capacity());
    const auto add = [&](const msrt_shape& s) {
      pointers.push_back(s.dtype == 0 ? nullptr : &types.emplace_back(TypeOf(s)));
    };
    for (size_t i = 0; i < node.input_count; ++i) add(node.inputs[i]);
    for (size_t i = 0; i < node.output_count; ++i) add(node.outputs[i]);
    values.resize(node.input_count);
    known.resize(node.input_count);
    for (size_t i = 0; i < node.input_count; ++i) {
      if (node.known == nullptr || node.known[i] == nullptr || pointers[i] == nullptr) continue;
      const Type& type = *pointers[i];
      values[i].dtype = type.dtype;
      values[i].dims = type.dims;
      values[i].bytes = {static_cast<const std::byte*>(node.known[i]), type.bytes()};
      known[i] = &values[i];
    }
    const std::span<const Type* const> all(pointers);
    view.emplace(op.WithTypes(all.first(node.input_count), all.subspan(node.input_count), known));
  }
  BoundNode(const BoundNode&) = delete;
  BoundNode& operator=(const BoundNode&) = delete;

  std::vector<Type> types;  // never reallocates: `pointers` point into it
  std::vector<const Type*> pointers;
  std::vector<ConstTensor> values;
  std::vector<const ConstTensor*> known;
  std::optional<OpView> view;
};

// Fills in the views of inputs and outputs except their data.
void AddViews(const ExportedKernel& k, std::span<const OpView* const> ops, ExportedBound* bound) {
  const auto view = [](const Type& type, Layout layout) {
    return TensorView{type.dtype, type.dims, layout, nullptr};
  };
  bound->views.reserve(k.border.inputs.size() + k.border.outputs.size());
  for (size_t i = 0; i < k.border.inputs.size(); ++i) {
    const auto [n, port] = k.border.inputs[i];
    bound->views.push_back(ops[n]->has_input(port)
                               ? view(ops[n]->input(port), k.candidate.input_layouts[i])
                               : TensorView{});
  }
  bound->inputs = bound->views.size();
  for (size_t i = 0; i < k.border.outputs.size(); ++i) {
    const auto [n, port] = k.border.outputs[i];
    bound->views.push_back(ops[n]->has_output(port)
                               ? view(ops[n]->output(port), k.candidate.output_layouts[i])
                               : TensorView{});
  }
}

// Sets the strides of the views that have some.
void AddStrides(const msrt_bound_node& node, ExportedBound* bound) {
  if (node.input_strides == nullptr && node.output_strides == nullptr) return;
  bound->strides.resize(bound->views.size());
  const auto set = [&](const msrt_strides* given, size_t first, size_t count) {
    for (size_t i = 0; given != nullptr && i < count; ++i) {
      const auto is_zero = [](int64_t s) { return s == 0; };
      if (std::all_of(std::begin(given[i].dims), std::end(given[i].dims), is_zero)) continue;
      bound->strides[first + i] = given[i];
      bound->views[first + i].strides = bound->strides[first + i].dims;
    }
  };
  set(node.input_strides, 0, node.input_count);
  set(node.output_strides, node.input_count, node.output_count);
}

// Returns the compiled node, or the piece of it that is bound.
OpView ViewFor(const ExportedKernel& kernel, const msrt_bound_node& node, ExportedBound* bound) {
  const OpView& op = *kernel.ops[0];
  if (node.attr_count == 0) return op;
  bound->attrs = kernel.image.image(kernel.candidate.node).attrs();
  for (size_t i = 0; i < node.attr_count; ++i) bound->attrs->Set(node.attrs[i]);
  return op.WithAttrs(&bound->attrs->attrs(), bound->attrs->defs());
}

// A delegate with the names that its table points to.
struct Owned {
  explicit Owned(std::unique_ptr<const Delegate> d)
      : delegate(std::move(d)), devices(delegate->devices()) {
    for (const std::string& device : devices) names.push_back(device.c_str());
  }
  const std::unique_ptr<const Delegate> delegate;
  const std::vector<std::string> devices;
  std::vector<const char*> names;
};

const Delegate& DelegateOf(void* self) { return *static_cast<const Owned*>(self)->delegate; }

void Offer(const msrt_query_sink& sink, const Candidate& c) {
  std::vector<msrt_layout> inputs, outputs;
  for (Layout l : c.input_layouts) inputs.push_back(static_cast<msrt_layout>(l));
  for (Layout l : c.output_layouts) outputs.push_back(static_cast<msrt_layout>(l));
  std::vector<msrt_in_place> in_place;
  for (const auto& [input, output] : c.in_place) in_place.push_back({input, output});
  msrt_candidate out = MSRT_INIT(msrt_candidate);
  out.arithmetic = c.arithmetic.empty() ? nullptr : c.arithmetic.c_str();
  out.nodes = c.nodes.empty() ? &c.node : c.nodes.data();
  out.node_count = c.nodes.empty() ? 1 : c.nodes.size();
  out.input_layouts = inputs.data();
  out.output_layouts = outputs.data();
  out.input_count = inputs.size();
  out.output_count = outputs.size();
  out.seconds = c.seconds;
  out.algorithm = c.algorithm.c_str();
  out.in_place = in_place.data();
  out.in_place_count = in_place.size();
  out.packs_constants = c.packs_constants;
  out.reduced = c.reduced;
  out.tag = c.tag;
  out.device = c.device;
  out.workspace_bytes = c.workspace_bytes;
  out.asynchronous = c.asynchronous;
  out.strided_inputs = c.strided_inputs;
  out.strided_outputs = c.strided_outputs;
  for (int d = 0; d < c.granule.rank(); ++d) out.granule[d] = c.granule[d];
  sink.candidate(sink.sink, &out);
}

// Delegates behind this interface have kernels for single ops, so all of them refuse a loop as a
// whole. Such a refusal says nothing about the loop and is not reported.
bool CallsGraphs(const msrt_node_view& node) {
  return std::any_of(node.attrs, node.attrs + node.attr_count, [](const msrt_attr_view& a) {
    return a.kind == MSRT_ATTR_GRAPH || a.kind == MSRT_ATTR_GRAPHS;
  });
}

msrt_status Query(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                  const msrt_query_sink* sink) {
  return Guarded(*host, [&]() -> Status {
    QueryResult result;
    DelegateOf(self).Query(GraphImage(*graph, *host), &result);
    for (const Candidate& c : result.candidates) Offer(*sink, c);
    for (const Refusal& r : result.refusals) {
      if (!CallsGraphs(*graph->node(graph->graph, r.node)))
        sink->refuse(sink->sink, r.node, r.reason.c_str());
    }
    return OkStatus();
  });
}

msrt_status Compile(void* self, const msrt_host_api* host, const msrt_graph_view* graph,
                    const msrt_candidate* candidate, void** out) {
  return Guarded(*host, [&]() -> Status {
    auto k = std::make_unique<ExportedKernel>(host, *graph, *candidate);
    MSRT_ASSIGN_OR_RETURN(
        k->kernel,
        DelegateOf(self).Compile(k->image, k->candidate, {&k->allocator, &k->parallel, &k->forms}));
    *out = k.release();
    return OkStatus();
  });
}

msrt_status Bind(void*, const msrt_host_api* host, void* kernel, const msrt_bound_node* nodes,
                 size_t node_count, void** out) {
  return Guarded(*host, [&]() -> Status {
    auto& k = *static_cast<ExportedKernel*>(kernel);
    auto bound = std::make_unique<ExportedBound>();
    const BoundNode first(ViewFor(k, nodes[0], bound.get()), nodes[0]);
    std::vector<std::unique_ptr<const BoundNode>> others;  // a deque would allocate when empty
    std::vector<const OpView*> ops{&*first.view};
    for (size_t n = 1; n < node_count; ++n) {
      others.push_back(std::make_unique<const BoundNode>(*k.ops[n], nodes[n]));
      ops.push_back(&*others.back()->view);
    }
    AddViews(k, ops, bound.get());
    AddStrides(nodes[0], bound.get());
    MSRT_ASSIGN_OR_RETURN(bound->kernel,
                          node_count == 1 ? k.kernel->Bind(*ops[0]) : k.kernel->BindNodes(ops));
    *out = bound.release();
    return OkStatus();
  });
}

msrt_status Run(void*, void* bound, const msrt_run_args* args) {
  const msrt_host_api& host = *args->host;
  return Guarded(host, [&]() -> Status {
    const auto& b = *static_cast<const ExportedBound*>(bound);
    // Several threads may run the same kernel, so each fills in the data in its own copy of the
    // views.
    constexpr size_t kInline = 12;
    static_assert(std::is_trivially_destructible_v<TensorView>);
    alignas(TensorView) std::byte few[kInline * sizeof(TensorView)];
    std::vector<TensorView> many;
    const bool inline_views = b.views.size() <= kInline;
    if (!inline_views) many = b.views;
    else
      std::uninitialized_copy(b.views.begin(), b.views.end(), reinterpret_cast<TensorView*>(few));
    const std::span<TensorView> views(
        inline_views ? reinterpret_cast<TensorView*>(few) : many.data(), b.views.size());
    for (size_t i = 0; i < args->input_count; ++i)
      views[i].data = const_cast<void*>(args->inputs[i]);
    for (size_t i = 0; i < args->output_count; ++i) views[b.inputs + i].data = args->outputs[i];
    HostParallel parallel(&host);
    HostScratch scratch(args->scratch);
    HostInputForms forms(*args);
    return b.kernel->Run({views.first(b.inputs), views.subspan(b.inputs), parallel, scratch, forms,
                          args->device, args->stream, args->workspace});
  });
}

}  // namespace

ExportedDelegate Export(std::unique_ptr<const Delegate> delegate) {
  auto owned = std::make_unique<Owned>(std::move(delegate));
  msrt_delegate_api api = MSRT_INIT(msrt_delegate_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = owned->delegate->name();
  api.native_types = owned->delegate->native_types();
  api.devices = owned->names.data();
  api.device_count = owned->names.size();
  api.query = Query;
  api.compile = Compile;
  api.kernel_destroy = [](void*, void* kernel) { delete static_cast<ExportedKernel*>(kernel); };
  api.kernel_bytes = [](void*, const void* kernel) {
    return static_cast<const ExportedKernel*>(kernel)->kernel->packed_bytes();
  };
  api.bind = Bind;
  api.bound_destroy = [](void*, void* bound) { delete static_cast<ExportedBound*>(bound); };
  api.bound_bytes = [](void*, const void* bound) {
    const auto& b = *static_cast<const ExportedBound*>(bound);
    return b.kernel->bytes() + b.views.size() * sizeof(TensorView);
  };
  api.workspace_bytes = [](void*, const void* bound) {
    return static_cast<const ExportedBound*>(bound)->kernel->workspace_bytes();
  };
  api.prepare = [](void*, const msrt_host_api* host, void* bound) {
    return Guarded(*host, [&] { return static_cast<ExportedBound*>(bound)->kernel->Prepare(); });
  };
  api.run = Run;
  api.destroy = [](void* self) { delete static_cast<Owned*>(self); };
  return {api, owned.release()};
}

}  // namespace msrt::sdk
