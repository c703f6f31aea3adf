#include "core/bind/piece_kernels.h"

#include <algorithm>

#include "core/delegate/attr_views.h"

namespace msrt {
namespace {

class KeyWriter {
 public:
  template <typename T>
  void Add(T number) {
    static_assert(std::is_arithmetic_v<T>);
    key_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void Add(std::string_view text) {
    Add(text.size());
    key_.append(text);
  }
  void Add(const msrt_shape& s) {
    Add(s.dtype);
    if (s.dtype == 0) return;
    Add(s.rank);
    for (int32_t d = 0; d < s.rank; ++d) Add(s.dims[d]);
  }
  void Add(const AttrValue& value) {
    Add(value.index());
    std::visit([&](const auto& v) { AddAttr(v); }, value);
  }
  std::string Take() { return std::move(key_); }

 private:
  void AddAttr(int64_t v) { Add(v); }
  void AddAttr(double v) { Add(v); }
  void AddAttr(DType v) { Add(static_cast<int>(v)); }
  void AddAttr(GraphRef v) { Add(v.index); }
  void AddAttr(const std::string& v) { Add(std::string_view(v)); }
  void AddAttr(const ConstTensor& v) { Add(reinterpret_cast<uintptr_t>(v.bytes.data())); }
  template <typename T>
  void AddAttr(const std::vector<T>& list) {
    Add(list.size());
    for (const T& v : list) AddAttr(v);
  }
  std::string key_;
};

// Constants belong to the step. Other known values follow from the shapes of the whole.
void AddKnown(const Graph& graph, const Node& node, const PieceNode& piece, KeyWriter* key) {
  for (size_t i = 0; i < piece.known.size(); ++i) {
    const ConstTensor* known = piece.known[i];
    const bool constant = node.inputs[i] != kNoValue && graph.value(node.inputs[i]).constant;
    key->Add(known != nullptr);
    if (known == nullptr || constant) continue;
    key->Add(
        std::string_view(reinterpret_cast<const char*>(known->bytes.data()), known->bytes.size()));
  }
}

std::string KeyOf(const Graph& graph, const Step& step, uint32_t number,
                  const std::vector<PieceNode>& nodes) {
  KeyWriter key;
  key.Add(number);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const PieceNode& piece = nodes[n];
    for (const msrt_shape& s : piece.inputs) key.Add(s);
    for (const msrt_shape& s : piece.outputs) key.Add(s);
    AddKnown(graph, graph.nodes[step.nodes[n]], piece, &key);
    for (const Attr& a : piece.attrs) key.Add(std::string_view(a.name)), key.Add(a.value);
    for (std::string_view name : piece.removed_attrs) key.Add(name);
    for (const auto* strides : {&piece.input_strides, &piece.output_strides}) {
      for (const msrt_strides& s : *strides) {
        for (int64_t d : s.dims) key.Add(d);
      }
    }
  }
  return key.Take();
}

// Views of the attributes in which a piece differs from its node. `store` and `defs`, which is
// empty, own what they point to besides `piece`.
std::vector<msrt_attr_view> AttrViews(const Node& node, const PieceNode& piece, AttrStore* store,
                                      std::vector<AttrDef>* defs) {
  std::vector<msrt_attr_view> without_default;
  const auto removed = [&](std::string_view name) {
    return std::find(piece.removed_attrs.begin(), piece.removed_attrs.end(), name) !=
           piece.removed_attrs.end();
  };
  for (const AttrDef& def : node.def->attrs) {
    if (def.local || removed(def.name)) defs->push_back(def);
    const bool single =
        def.kind == AttrKind::kInt || def.kind == AttrKind::kFloat || def.kind == AttrKind::kString;
    if (!removed(def.name) || (single && !def.local)) continue;
    msrt_attr_view view{};
    view.name = def.name.data();
    view.kind = static_cast<msrt_attr_kind>(def.kind);
    view.flags = MSRT_ATTR_IS_DEFAULT;
    without_default.push_back(view);
  }
  std::vector<msrt_attr_view> views = store->ViewsOf(piece.attrs, *defs);
  views.insert(views.end(), without_default.begin(), without_default.end());
  return views;
}

}  // namespace

// A kernel with everything it points to; the kernel is destroyed first.
struct PieceKernels::Bound {
  std::vector<PieceNode> nodes;
  AttrStore store;
  std::vector<std::vector<AttrDef>> defs;
  std::vector<std::vector<msrt_attr_view>> attrs;
  BoundKernel kernel;
  size_t bytes = 0;

  explicit Bound(std::vector<PieceNode> n) : nodes(std::move(n)) {}

  Status Bind(const Program& program, const Step& step) {
    std::vector<msrt_bound_node> views(nodes.size());
    std::vector<std::vector<const void*>> known(nodes.size());
    attrs.resize(nodes.size());
    defs.resize(nodes.size());
    for (size_t n = 0; n < nodes.size(); ++n) {
      const PieceNode& piece = nodes[n];
      const Node& node = program.graph->nodes[step.nodes[n]];
      if (!piece.attrs.empty() || !piece.removed_attrs.empty())
        attrs[n] = AttrViews(node, piece, &store, &defs[n]);
      for (const ConstTensor* k : piece.known)
        known[n].push_back(k == nullptr ? nullptr : k->bytes.data());
      msrt_bound_node& v = views[n];
      v.inputs = piece.inputs.data(), v.input_count = piece.inputs.size();
      v.outputs = piece.outputs.data(), v.output_count = piece.outputs.size();
      v.known = known[n].data();
      v.attrs = attrs[n].data(), v.attr_count = attrs[n].size();
      if (!piece.input_strides.empty()) v.input_strides = piece.input_strides.data();
      if (!piece.output_strides.empty()) v.output_strides = piece.output_strides.data();
      bytes += sizeof(PieceNode) + attrs[n].size() * sizeof(msrt_attr_view) +
               (piece.inputs.size() + piece.outputs.size()) *
                   (sizeof(msrt_shape) + sizeof(msrt_strides));
    }
    auto bound = step.kernel.Bind(*program.host, views);
    if (!bound.ok()) {
      Status status = std::move(bound).status().Within(Describe(program, step));
      if (MayRunElsewhere(status.code(), IsOnDevice(step.queue)))
        status = std::move(status).With(kFailedDelegate, step.delegate);
      return status;
    }
    kernel = *std::move(bound);
    bytes += sizeof(Bound) + 256 + kernel.bytes();
    return OkStatus();
  }
};

Result<std::shared_ptr<const BoundKernel>> PieceKernels::Get(const Program& program,
                                                             uint32_t number,
                                                             std::vector<PieceNode> nodes) {
  const Step& step = program.steps[number];
  std::string key = KeyOf(*program.graph, step, number, nodes);
  const auto kernel_of = [](const std::shared_ptr<const Bound>& bound) {
    return std::shared_ptr<const BoundKernel>(bound, &bound->kernel);
  };
  {
    std::lock_guard lock(mutex_);
    if (const auto it = index_.find(key); it != index_.end()) {
      entries_.splice(entries_.begin(), entries_, it->second);
      ++counts_.hits;
      return kernel_of(it->second->bound);
    }
    ++counts_.misses;
  }
  auto made = std::make_shared<Bound>(std::move(nodes));
  MSRT_RETURN_IF_ERROR(made->Bind(program, step));
  std::list<Entry> dropped;  // destroyed without the lock: a kernel's destructor calls delegates
  std::lock_guard lock(mutex_);
  if (const auto it = index_.find(key); it != index_.end()) return kernel_of(it->second->bound);
  key.shrink_to_fit();
  made->bytes += 2 * key.size();
  entries_.push_front({key, made});
  index_.emplace(std::move(key), entries_.begin());
  counts_.bytes += made->bytes;
  while (counts_.bytes > max_bytes_ && entries_.size() > 1) {
    counts_.bytes -= entries_.back().bound->bytes;
    index_.erase(entries_.back().key);
    dropped.splice(dropped.end(), entries_, std::prev(entries_.end()));
  }
  counts_.kernels = entries_.size();
  return kernel_of(made);
}

PieceKernels::Counts PieceKernels::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace msrt
