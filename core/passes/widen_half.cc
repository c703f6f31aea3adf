#include "core/passes/widen_half.h"

#include <algorithm>
#include <string_view>

#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"

namespace msrt {
namespace {

constexpr DTypeSet kNarrowTypes{DType::kF16, DType::kBF16};

bool IsNarrow(const Type& type) { return type.is_tensor() && kNarrowTypes.Has(type.dtype); }

Type Widened(Type type) {
  if (IsNarrow(type)) type.dtype = DType::kF32;
  return type;
}

// ---- possible forms of a node ------------------------------------------------------------------

// kNeither: the node has no narrow tensors or does not read their data, so it takes either form.
enum class Form : uint8_t { kNeither, kNarrow, kWide, kEither };

// Ops whose output elements are input elements; ScatterElements and ScatterND only without a
// reduction.
constexpr std::string_view kMoves[] = {
    "Identity",  "Reshape",         "Flatten",      "Squeeze",        "Unsqueeze",
    "Transpose", "Concat",          "Split",        "Slice",          "Gather",
    "Expand",    "GatherND",        "DepthToSpace", "Tile",           "GatherElements",
    "Pad",       "Where",           "Trilu",        "OneHot",         "SpaceToDepth",
    "Compress",  "ScatterElements", "ScatterND",    "ReverseSequence"};

bool IsMove(const Node& node, const OpView& op) {
  if (!node.domain.empty() ||
      std::find(std::begin(kMoves), std::end(kMoves), node.op) == std::end(kMoves))
    return false;
  return !node.op.starts_with("Scatter") || op.String("reduction") == "none";
}

// Whether the number of output elements, or integer or bool outputs, depend on the numbers that the
// node reads. Results of 8 bits and fewer are quantised and rounded in any case.
bool Decides(const Graph& graph, const Node& node) {
  if (node.op == "Range") return true;
  for (size_t i = 0; node.def->sizes != nullptr && i < node.inputs.size(); ++i) {
    if ((node.def->sizes->inputs >> i & 1) != 0 && node.inputs[i] != kNoValue &&
        IsNarrow(graph.value(node.inputs[i]).type))
      return true;
  }
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
    if (v == kNoValue) return false;
    const DType dtype = graph.value(v).type.dtype;
    return dtype == DType::kBool || (kIntTypes.Has(dtype) && BitsOf(dtype) > 8);
  });
}

// Whether the op means the same in f32: with narrow inputs made wide, narrow outputs become wide
// and all others stay.
bool CanBeWide(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  std::vector<Type> wide, outputs(node.outputs.size(), UndeclaredType());
  for (ValueId v : node.inputs)
    wide.push_back(v == kNoValue ? Type() : Widened(graph.value(v).type));
  std::vector<const Type*> inputs;
  std::vector<const ConstTensor*> constants;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    inputs.push_back(node.inputs[i] == kNoValue ? nullptr : &wide[i]);
    constants.push_back(
        inputs[i] == nullptr || IsNarrow(view.op().input(i)) ? nullptr : view.op().constant(i));
  }
  if (!InferTypes(*node.def, view.op().WithTypes(inputs, {}, constants), outputs,
                  /*check_attrs=*/false)
           .ok())
    return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Type& declared = graph.value(node.outputs[i]).type;
    if (!declared.is_tensor() || !outputs[i].is_tensor() ||
        outputs[i].dtype != Widened(declared).dtype)
      return false;
  }
  return true;
}

Form FormsOf(const PassContext& context, const Graph& graph, const Node& node) {
  DType narrow = DType::kNone;
  const auto note = [&](ValueId v) {
    if (v != kNoValue && IsNarrow(graph.value(v).type)) narrow = graph.value(v).type.dtype;
  };
  std::for_each(node.outputs.begin(), node.outputs.end(), note);
  std::for_each(node.inputs.begin(), node.inputs.end(), note);
  if (narrow == DType::kNone) return Form::kNeither;
  const OpDef* def = node.def;
  if (def == nullptr || def->custom != nullptr || def->effect != Effect::kNone ||
      (def->traits & kRunByExecutor) != 0)
    return Form::kNarrow;
  if ((def->traits & kShapeOnly) != 0) return Form::kNeither;
  if (context.computes_natively && context.computes_natively(node, narrow)) return Form::kNarrow;
  if (Decides(graph, node) || !CanBeWide(graph, node)) return Form::kNarrow;
  const NodeView view(graph, node);
  // Its output is not narrow, so it reads either form.
  const bool converts = node.domain.empty() && node.op == "Cast";
  return converts || IsMove(node, view.op()) ? Form::kEither : Form::kWide;
}

// ---- borders of wide regions
// ----------------------------------------------------------------------

// Chooses the forms of all nodes: nodes that may have either form minimise the number of converted
// elements. Each value is converted at most once each way.
class Borders {
 public:
  Borders(const PassContext& context, const Graph& graph)
      : graph_(graph),
        producers_(graph.Producers()),
        narrow_uses_(graph.value_count()),
        wide_uses_(graph.value_count()) {
    for (ValueId v : graph.outputs) ++narrow_uses_[IndexOf(v)];
    for (const Node& node : graph.nodes) {
      const Form form = FormsOf(context, graph, node);
      forms_.push_back(form == Form::kEither ? Form::kNarrow : form);
      if (form == Form::kEither) free_.push_back(forms_.size() - 1);
    }
    for (size_t n = 0; n < forms_.size(); ++n) CountUses(n, 1);
    for (size_t n : free_) {
      const std::vector<ValueId>& inputs = graph.nodes[n].inputs;
      if (std::any_of(inputs.begin(), inputs.end(), [&](ValueId v) { return IsWide(v); }))
        SetForm(n, Form::kWide);
    }
    for (int sweep = 0; sweep < kMaxSweeps && (ImproveAll(free_.begin(), free_.end()) |
                                               ImproveAll(free_.rbegin(), free_.rend()));
         ++sweep) {
    }
  }

  Form form(size_t node) const { return forms_[node]; }
  // Whether the producer makes the value wide. Here and below only for values that existed when the
  // borders were computed.
  bool IsWide(ValueId v) const {
    return v != kNoValue && IsNarrow(graph_.value(v).type) && producers_[IndexOf(v)] >= 0 &&
           forms_[static_cast<size_t>(producers_[IndexOf(v)])] == Form::kWide;
  }
  bool IsReadNarrow(ValueId v) const { return narrow_uses_[IndexOf(v)] != 0; }

 private:
  static constexpr int kMaxSweeps = 8;

  // Returns the number of elements to convert, with a guess for open dims.
  double Elements(ValueId v) const {
    constexpr double kOpenDim = 64;
    const Type& type = graph_.value(v).type;
    if (!type.rank_known) return kOpenDim * kOpenDim;
    double elements = 1;
    for (int64_t d : type.dims) elements *= IsKnown(d) ? static_cast<double>(d) : kOpenDim;
    return elements;
  }
  double CostOfValue(ValueId v) const {
    if (v == kNoValue || !IsNarrow(graph_.value(v).type)) return 0;
    return (IsWide(v) ? narrow_uses_ : wide_uses_)[IndexOf(v)] != 0 ? Elements(v) : 0;
  }
  // Returns the cost of all values that the node reads or makes. A value that it reads twice counts
  // twice, in either form.
  double CostAround(size_t n) const {
    double cost = 0;
    for (ValueId v : graph_.nodes[n].inputs) cost += CostOfValue(v);
    for (ValueId v : graph_.nodes[n].outputs) cost += CostOfValue(v);
    return cost;
  }
  void CountUses(size_t n, int change) {
    if (forms_[n] == Form::kNeither) return;
    std::vector<int>& uses = forms_[n] == Form::kWide ? wide_uses_ : narrow_uses_;
    for (ValueId v : graph_.nodes[n].inputs) {
      if (v != kNoValue) uses[IndexOf(v)] += change;
    }
  }
  void SetForm(size_t n, Form form) {
    CountUses(n, -1);
    forms_[n] = form;
    CountUses(n, 1);
  }
  // Chooses the cheaper form, wide if both cost the same, so that borders move away from
  // computation. Returns whether the form changed.
  bool Improve(size_t n) {
    const Form before = forms_[n];
    SetForm(n, Form::kNarrow);
    const double narrow = CostAround(n);
    SetForm(n, Form::kWide);
    const double wide = CostAround(n);
    if (narrow < wide || (narrow == 0 && wide == 0 && before == Form::kNarrow))
      SetForm(n, Form::kNarrow);
    return forms_[n] != before;
  }
  template <typename Iterator>
  bool ImproveAll(Iterator begin, Iterator end) {
    bool changed = false;
    for (; begin != end; ++begin) changed |= Improve(*begin);
    return changed;
  }

  const Graph& graph_;
  const std::vector<int32_t> producers_;
  std::vector<int> narrow_uses_, wide_uses_;  // by value; a graph's outputs are narrow
  std::vector<Form> forms_;                   // by node
  std::vector<size_t> free_;                  // nodes that may have either form
};

// ---- the rewrite --------------------------------------------------------------------------------

class Widening {
 public:
  Widening(const Borders& borders, Graph* graph)
      : borders_(borders), graph_(*graph), wide_(graph->value_count(), kNoValue) {}

  void Run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (borders_.form(n) == Form::kWide) Widen(std::move(nodes[n]));
      else Keep(std::move(nodes[n]));
    }
  }

 private:
  // Only ops like Shape may read a value that exists in its wide form alone.
  void Keep(Node node) {
    for (ValueId& v : node.inputs) {
      if (borders_.IsWide(v) && !borders_.IsReadNarrow(v)) v = wide_[IndexOf(v)];
    }
    graph_.nodes.push_back(std::move(node));
  }

  void Widen(Node node) {
    for (ValueId& v : node.inputs) {
      if (v != kNoValue && IsNarrow(graph_.value(v).type)) v = Wide(v);
    }
    std::vector<ValueId> made;
    for (ValueId& v : node.outputs) {
      if (v == kNoValue || !IsNarrow(graph_.value(v).type)) continue;
      made.push_back(v);
      v = AddWideValue(v);
    }
    graph_.nodes.push_back(std::move(node));
    for (ValueId v : made) {
      if (borders_.IsReadNarrow(v)) AddCast(wide_[IndexOf(v)], v);
    }
  }

  ValueId Wide(ValueId v) {
    if (wide_[IndexOf(v)] == kNoValue) AddCast(v, AddWideValue(v));
    return wide_[IndexOf(v)];
  }
  ValueId AddWideValue(ValueId v) {
    wide_[IndexOf(v)] =
        graph_.AddValue(StrCat(graph_.value(v).name, ".f32"), Widened(graph_.value(v).type));
    return wide_[IndexOf(v)];
  }
  void AddCast(ValueId from, ValueId to) {
    Node cast;
    cast.name = StrCat(graph_.value(to).name, ".Cast");
    cast.op = "Cast";
    cast.def = FindOp("", "Cast", nullptr);
    cast.version = cast.def->version;
    cast.inputs = {from};
    cast.outputs = {to};
    cast.attrs = {{"to", graph_.value(to).type.dtype}};
    graph_.nodes.push_back(std::move(cast));
  }

  const Borders& borders_;
  Graph& graph_;
  std::vector<ValueId> wide_;  // by value before the pass: its f32 form, once it exists
};

}  // namespace

Status WidenHalf(const PassContext& context, Graph* graph) {
  bool has_narrow = false;
  for (uint32_t v = 0; v < graph->value_count() && !has_narrow; ++v)
    has_narrow = IsNarrow(graph->value(ValueId(v)).type);
  if (!has_narrow) return OkStatus();
  const Borders borders(context, *graph);
  Widening(borders, graph).Run();
  return OkStatus();
}

}  // namespace msrt
