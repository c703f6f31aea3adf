#include "core/passes/eliminate_moves.h"

#include <algorithm>

#include "core/passes/transposes.h"
#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/streams.h"

namespace msrt {
namespace {

constexpr int kMoveRounds = 4;  // maximum rounds of the whole pass
constexpr int kLookAhead = 16;  // maximum nodes between two Transposes

// ---- nodes that do nothing ----------------------------------------------------------------------

bool AllAre(const std::optional<std::vector<int64_t>>& list, int64_t value) {
  return list && std::all_of(list->begin(), list->end(), [&](int64_t v) { return v == value; });
}

// Whether the output of the node equals its first input, element by element.
bool DoesNothing(const Rewriter& r, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return false;
  if (node.op == "Identity") return true;
  if (node.op == "Dropout")
    return !DrawsNumbers(node) && (node.outputs.size() < 2 || node.outputs[1] == kNoValue);
  const NodeView view(r.graph(), node);
  const OpView& op = view.op();
  if (node.op == "Cast") return op.Dtype("to") == op.input(0).dtype;
  if (node.op == "Concat") return node.inputs.size() == 1;
  // The other ops keep the order of elements, some under the conditions below, so they do nothing
  // if all dims stay.
  if (!ProvenEqual(op.input(0), op.output(0))) return false;
  if (node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze" ||
      node.op == "Flatten" || node.op == "Expand")
    return true;
  if (node.op == "Slice") return AllAre(IntsAttrOrInput(op, "steps", 4), 1);
  if (node.op == "Tile") return AllAre(IntsAttrOrInput(op, "repeats", 1), 1);
  return node.op == "Pad" && AllAre(IntsAttrOrInput(op, "pads", 1), 0);
}

// ---- views --------------------------------------------------------------------------------------

// Squeeze and Unsqueeze of the same axes undo each other, whatever the other dims are.
bool Undoes(const Rewriter& r, const Node& second, const Node& first) {
  if (!(first.op == "Squeeze" && second.op == "Unsqueeze") &&
      !(first.op == "Unsqueeze" && second.op == "Squeeze"))
    return false;
  const NodeView a(r.graph(), first), b(r.graph(), second);
  const auto first_axes = IntsAttrOrInput(a.op(), "axes", 1),
             second_axes = IntsAttrOrInput(b.op(), "axes", 1);
  return first_axes && second_axes && !first_axes->empty() && *first_axes == *second_axes;
}

bool SimplifyView(Rewriter* r, size_t n) {
  const Node& node = r->node(n);
  const auto p = r->Producer(node.inputs[0]);
  if (!p || !r->IsLive(*p) || !IsView(r->node(*p))) return false;
  const ValueId x = r->node(*p).inputs[0];
  if (Undoes(*r, node, r->node(*p)) || ProvenEqual(r->type(x), r->type(node.outputs[0]))) {
    if (r->Forward(n, x)) return true;
  }
  auto attrs = ReshapeAttrs(r->type(x), r->type(node.outputs[0]));
  return attrs && r->Replace(n, "Reshape", {x}, *std::move(attrs));
}

// ---- transposes after elementwise nodes ---------------------------------------------------------

// The inputs of an elementwise node before the Transpose that all of them share.
struct UntransposedInputs {
  Perm perm;
  std::vector<ValueId> inputs;  // constants unchanged
  int transposes = 0;
};

bool IsElementwise(const Rewriter& r, size_t n) {
  if (!r.IsLive(n)) return false;
  const Node& node = r.node(n);
  const auto attrs = node.def->attrs;
  return (node.def->traits & kElementwise) != 0 && node.def->effect == Effect::kNone &&
         node.outputs.size() == 1 && std::none_of(attrs.begin(), attrs.end(), [](const AttrDef& a) {
           return a.name == "axis";
         });
}

// Whether a constant has at most one dim other than 1, so that it can be transposed without moving
// data.
bool IsLine(const ConstTensor& t) {
  return std::count_if(t.dims.begin(), t.dims.end(), [](int64_t d) { return d != 1; }) <= 1;
}

std::optional<UntransposedInputs> InputsBeforeTranspose(const Rewriter& r, const Node& node) {
  UntransposedInputs pushed;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) {
      pushed.inputs.push_back(v);
      continue;
    }
    if (const ConstTensor* c = r.constant(v)) {
      if (!IsLine(*c)) return std::nullopt;
      pushed.inputs.push_back(v);
      continue;
    }
    const auto p = r.Producer(v, "Transpose");
    if (!p || r.uses(v) != 1) return std::nullopt;
    const Perm perm = PermOf(r, r.node(*p));
    if (perm.empty() || (!pushed.perm.empty() && perm != pushed.perm)) return std::nullopt;
    pushed.perm = perm;
    pushed.inputs.push_back(r.node(*p).inputs[0]);
    ++pushed.transposes;
  }
  for (ValueId v : node.inputs) {
    if (v != kNoValue && r.type(v).rank() > static_cast<int>(pushed.perm.size()))
      return std::nullopt;
  }
  return pushed.transposes == 0 ? std::nullopt : std::optional(std::move(pushed));
}

// Whether `v` leads to a Transpose through a chain of elementwise nodes with constants, without
// other uses.
bool LeadsToTranspose(const Rewriter& r, ValueId v) {
  for (int i = 0; i < kLookAhead; ++i) {
    const auto user = r.SoleUser(v);
    if (!user) return false;
    if (r.Is(*user, "Transpose")) return true;
    if (!IsElementwise(r, *user)) return false;
    for (ValueId other : r.node(*user).inputs) {
      if (other != v && other != kNoValue &&
          (r.constant(other) == nullptr || !IsLine(*r.constant(other))))
        return false;
    }
    v = r.node(*user).outputs[0];
  }
  return false;
}

// Returns the constant as it must be before the Transpose.
ValueId Turned(Rewriter* r, ValueId v, const Perm& perm) {
  const ConstTensor* c = r->constant(v);
  if (c->dims.elements() == 1) return v;
  ConstTensor turned = *c;
  turned.dims = Dims::Filled(static_cast<int>(perm.size()), 1);
  const int lead = turned.dims.rank() - c->dims.rank();
  for (int i = 0; i < c->dims.rank(); ++i)
    turned.dims[perm[static_cast<size_t>(lead + i)]] = c->dims[i];
  return r->AddConstant(StrCat(r->graph().value(v).name, ".turned"), std::move(turned));
}

bool PushTransposeBehind(Rewriter* r, size_t n) {
  if (!IsElementwise(*r, n)) return false;
  const auto pushed = InputsBeforeTranspose(*r, r->node(n));
  if (!pushed || (pushed->transposes < 2 && !LeadsToTranspose(*r, r->node(n).outputs[0])))
    return false;
  std::vector<ValueId> inputs = pushed->inputs;
  for (ValueId& v : inputs) {
    if (v != kNoValue && r->constant(v) != nullptr) v = Turned(r, v, pushed->perm);
  }
  const Node node = r->node(n);
  const ValueId before = r->Add(n, node.op, std::move(inputs), node.attrs);
  return before != kNoValue && r->Replace(n, "Transpose", {before}, PermAttr(pushed->perm));
}

bool Simplify(Rewriter* r, size_t n) {
  // It has had its effect: passes run after differentiation.
  if (r->IsLive(n, "msrt") && r->node(n).op == "StopGradient")
    return r->Forward(n, r->node(n).inputs[0]);
  if (!r->IsLive(n) || r->node(n).outputs.size() != 1) return false;
  const Node& node = r->node(n);
  if (node.outputs[0] == kNoValue) return false;  // a loop for its effects
  if (DoesNothing(*r, node) && r->Forward(n, node.inputs[0])) return true;
  if (node.op == "Mul" || node.op == "Div") {
    const auto scaled = WithScalar(*r, node, /*ordered=*/node.op == "Div");
    if (scaled && scaled->constant == 1 && r->Forward(n, scaled->x)) return true;
  }
  if (IsView(node)) return SimplifyView(r, n) || SimplifyViewOfTranspose(r, n);
  if (node.op == "Gather") return SliceInsteadOfGather(r, n);
  if (node.op == "Transpose") return SimplifyTranspose(r, n);
  return PushTransposeBehind(r, n);
}

}  // namespace

Status EliminateMoves(const PassContext& context, Graph* graph) {
  for (int round = 0; round < kMoveRounds; ++round) {
    Rewriter r(context, graph);
    bool any = false;
    const size_t count = r.node_count();
    for (size_t n = 0; n < count; ++n) any |= Simplify(&r, n);
    if (!any) break;
  }
  return OkStatus();
}

}  // namespace msrt
