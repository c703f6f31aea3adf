#include "core/passes/fold_shapes.h"

#include <algorithm>
#include <limits>

#include "core/passes/fold_constants.h"
#include "core/passes/rewrite.h"
#include "core/passes/symbolic_shapes.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

constexpr int kShapeRounds = 3;

std::optional<std::vector<int64_t>> NumbersOf(const DimProducts& list) {
  std::vector<int64_t> numbers;
  for (const DimProduct& p : list) {
    if (!p.number()) return std::nullopt;
    numbers.push_back(*p.number());
  }
  return numbers;
}

// Replaces a node by a constant if all its elements have turned out to be numbers.
bool FoldNumbers(Rewriter* r, const SymbolicShapes& shapes, size_t n) {
  const Node& node = r->node(n);
  if (node.outputs.size() != 1 || node.outputs[0] == kNoValue || !shapes.data(node.outputs[0]))
    return false;
  const Type& type = r->type(node.outputs[0]);
  const auto numbers = NumbersOf(*shapes.data(node.outputs[0]));
  if (!numbers || !kIndexTypes.Has(type.dtype) || !type.concrete()) return false;
  if (type.dtype == DType::kI64)
    return r->SetConstant(n, ConstTensor::Of<int64_t>(DType::kI64, type.dims, *numbers));
  std::vector<int32_t> narrow;
  for (int64_t v : *numbers) {
    if (v < INT32_MIN || v > INT32_MAX) return false;
    narrow.push_back(static_cast<int32_t>(v));
  }
  return r->SetConstant(n, ConstTensor::Of<int32_t>(DType::kI32, type.dims, narrow));
}

// ---- Reshape ------------------------------------------------------------------------------------

// Returns the shape with 0 for dims that keep their position and -1 for one that follows from the
// others; nullopt if it depends on more.
std::optional<std::vector<int64_t>> ReshapeList(const DimProducts& in, const DimProducts& list,
                                                bool zero_copies) {
  std::vector<int64_t> shape;
  std::optional<size_t> inferred;
  DimProduct from = DimProduct::Number(1), to = from;
  for (size_t i = 0; i < std::max(in.size(), list.size()); ++i) {
    const auto number = i < list.size() ? list[i].number() : std::nullopt;
    const bool copied = i < list.size() && i < in.size() &&
                        ((number == 0 && zero_copies) || (!number && list[i] == in[i]));
    if (i < in.size() && !copied) from = from.Times(in[i]);
    if (i >= list.size()) continue;
    if (copied) {
      shape.push_back(0);
      continue;
    }
    if (number && (*number > 0 || *number == -1)) {
      shape.push_back(*number);
      if (*number > 0) to = to.Times(list[i]);
      continue;
    }
    // A literal zero, or a second dim that must be inferred.
    if (number || inferred || !list[i].known()) return std::nullopt;
    inferred = i;
    shape.push_back(-1);
  }
  if (!inferred) return shape;
  const bool written =
      std::any_of(list.begin(), list.end(), [](const DimProduct& p) { return p.number() == -1; });
  return !written && list[*inferred].Times(to) == from ? std::optional(shape) : std::nullopt;
}

bool FoldReshape(Rewriter* r, const SymbolicShapes& shapes, size_t n) {
  const Node& node = r->node(n);
  if (node.inputs.size() != 2 || !shapes.dims(node.inputs[0]) || !shapes.data(node.inputs[1]))
    return false;
  const NodeView view(r->graph(), node);
  auto shape = ReshapeList(*shapes.dims(node.inputs[0]), *shapes.data(node.inputs[1]),
                           view.op().Int("allowzero") == 0);
  return shape && shape->size() <= kMaxRank &&
         r->Replace(n, "Reshape", {node.inputs[0]}, {{"shape", *std::move(shape)}});
}

// ---- Expand and Slice ---------------------------------------------------------------------------

// Whether every dim of the list is that of the input, or 1.
bool ExpandsToItself(const SymbolicShapes& shapes, const Node& node) {
  if (node.inputs.size() != 2 || !shapes.dims(node.inputs[0]) || !shapes.data(node.inputs[1]))
    return false;
  const DimProducts &in = *shapes.dims(node.inputs[0]), &list = *shapes.data(node.inputs[1]);
  if (list.size() > in.size()) return false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!(list[i] == in[in.size() - list.size() + i]) && !(list[i] == DimProduct::Number(1)))
      return false;
  }
  return true;
}

// Replaces ends that equal the dims by ends beyond every dim, which need no input.
bool FoldSliceEnds(Rewriter* r, const SymbolicShapes& shapes, size_t n) {
  const Node node = r->node(n);
  const NodeView view(r->graph(), node);
  const OpView& op = view.op();
  if (!op.has_input(2) || op.constant(2) != nullptr || !shapes.data(node.inputs[2]) ||
      !shapes.dims(node.inputs[0]))
    return false;
  const DimProducts &in = *shapes.dims(node.inputs[0]), &list = *shapes.data(node.inputs[2]);
  const auto starts = IntsAttrOrInput(op, "starts", 1), axes = IntsAttrOrInput(op, "axes", 3),
             steps = IntsAttrOrInput(op, "steps", 4);
  if (!starts || !axes || !steps || starts->size() != list.size() ||
      (!axes->empty() && axes->size() != list.size()))
    return false;
  if (std::any_of(steps->begin(), steps->end(), [](int64_t s) { return s <= 0; })) return false;
  std::vector<int64_t> ends, at;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto axis = NormalizeAxis(axes->empty() ? static_cast<int64_t>(i) : (*axes)[i],
                                    static_cast<int>(in.size()));
    if (!axis.ok()) return false;
    const auto number = list[i].number();
    if (!number && !(list[i] == in[static_cast<size_t>(*axis)])) return false;
    ends.push_back(number ? *number : std::numeric_limits<int64_t>::max());
    at.push_back(*axis);
  }
  AttrList attrs{{"starts", *starts}, {"ends", std::move(ends)}, {"axes", std::move(at)}};
  if (!steps->empty()) attrs.Set("steps", *steps);
  return r->Replace(n, "Slice", {node.inputs[0]}, std::move(attrs));
}

// ---- lists --------------------------------------------------------------------------------------

const AttrDef* ListAttr(const OpDef& def, std::string_view name) {
  const auto it = std::find_if(def.attrs.begin(), def.attrs.end(), [&](const AttrDef& a) {
    return a.name == name && a.kind == AttrKind::kInts;
  });
  return it == def.attrs.end() ? nullptr : &*it;
}

// Turns constant lists into attributes of the same names: many kernels, and the splitting of nodes,
// require that form.
bool MoveListsToAttributes(Rewriter* r, size_t n) {
  const Node& node = r->node(n);
  std::vector<ValueId> inputs = node.inputs;
  AttrList attrs = node.attrs;
  for (size_t i = 1; i < inputs.size() && i < node.def->inputs.size(); ++i) {
    const ParamDef& param = node.def->inputs[i];
    const ConstTensor* list = inputs[i] == kNoValue ? nullptr : r->constant(inputs[i]);
    if (list == nullptr || param.kind != ParamDef::kOptional || !kIndexTypes.Has(list->dtype) ||
        list->dims.rank() != 1)
      continue;
    const AttrDef* attr = ListAttr(*node.def, param.name);
    if (attr == nullptr || list->dims.elements() > attr->max_count ||
        attrs.Find(param.name) != nullptr)
      continue;
    attrs.Set(param.name, IntValues(*list));
    inputs[i] = kNoValue;
  }
  if (inputs == node.inputs || node.outputs.size() != 1) return false;
  while (inputs.back() == kNoValue) inputs.pop_back();
  const std::string op = node.op;
  return r->Replace(n, op, std::move(inputs), std::move(attrs));
}

bool Fold(Rewriter* r, const SymbolicShapes& shapes, size_t n) {
  if (FoldNumbers(r, shapes, n)) return true;
  const std::string_view op = r->node(n).op;
  if (op == "Reshape") return FoldReshape(r, shapes, n);
  if (op == "Slice") return FoldSliceEnds(r, shapes, n);
  return op == "Expand" && ExpandsToItself(shapes, r->node(n)) &&
         r->Forward(n, r->node(n).inputs[0]);
}

// Writes open dims that have turned out to be a number or a symbol into the type.
bool NameDims(Rewriter* r, const SymbolicShapes& shapes, const Node& node) {
  bool any = false;
  for (ValueId v : node.outputs) {
    if (!shapes.has(v) || !shapes.dims(v) || r->IsOutput(v)) continue;
    Type type = r->type(v);
    bool named = false;
    for (int i = 0; i < type.rank(); ++i) {
      const auto dim = (*shapes.dims(v))[static_cast<size_t>(i)].dim();
      if (type.dims[i] != kUnknownDim || !dim) continue;
      type.dims[i] = *dim;
      named = true;
    }
    if (named) r->Refine(v, std::move(type));
    any |= named;
  }
  return any;
}

bool ReadsShapes(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.def != nullptr && (node.def->traits & kShapeOnly) != 0;
  });
}

// Returns whether anything changed.
bool FoldOnce(const PassContext& context, Graph* graph) {
  Rewriter r(context, graph);
  bool any = false;
  if (ReadsShapes(*graph) || HasOpenDims(*graph)) {
    SymbolicShapes shapes(*graph);
    for (size_t n = 0; n < r.node_count(); ++n) {
      if (!r.IsLive(n)) continue;
      shapes.Follow(r.node(n));
      any |= NameDims(&r, shapes, r.node(n));
      any |= Fold(&r, shapes, n);
    }
  }
  for (size_t n = 0; n < r.node_count(); ++n) any |= r.IsLive(n) && MoveListsToAttributes(&r, n);
  if (any) r.InferAgain();
  return any;
}

}  // namespace

Status FoldShapes(const PassContext& context, Graph* graph) {
  for (int round = 0; round < kShapeRounds; ++round) {
    if (!FoldOnce(context, graph)) return OkStatus();
    // New constants make more nodes constant, and more precise types prove more equalities.
    MSRT_RETURN_IF_ERROR(FoldConstants(context, graph));
  }
  return OkStatus();
}

}  // namespace msrt
