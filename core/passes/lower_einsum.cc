#include "core/passes/lower_einsum.h"

#include <algorithm>

#include "core/passes/rewrite.h"
#include "ops/einsum.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

using Indices = std::vector<int>;

// The parts of the indices in [batch, left, sum] x [batch, sum, right] -> [batch, left, right].
struct EinsumProduct {
  Indices batch, left, right, sum;
};

bool Has(const Indices& list, int index) {
  return std::find(list.begin(), list.end(), index) != list.end();
}

// Whether every dim equals the extent of its index, and no index occurs twice.
bool FollowsIndices(const Indices& operand, const Type& type, const EinsumPlan& plan) {
  for (size_t i = 0; i < operand.size(); ++i) {
    if (std::count(operand.begin(), operand.end(), operand[i]) != 1) return false;
    if (!ProvenEqual(type.dims[static_cast<int>(i)], plan.extents[static_cast<size_t>(operand[i])]))
      return false;
  }
  return true;
}

std::optional<EinsumProduct> ProductOf(const EinsumPlan& plan) {
  EinsumProduct p;
  for (int i = 0; i < plan.index_count(); ++i) {
    const bool a = Has(plan.operands[0], i), b = Has(plan.operands[1], i),
               out = i < plan.output_rank;
    if (a && b) (out ? p.batch : p.sum).push_back(i);
    else if (!out) return std::nullopt;
    else (a ? p.left : p.right).push_back(i);
  }
  return p;
}

class Lowering {
 public:
  Lowering(Rewriter* r, size_t n, const EinsumPlan& plan) : r_(*r), n_(n), plan_(plan) {}

  bool Run(const EinsumProduct& p) {
    // A part with several indices, or none, needs a Reshape and thus their extents.
    for (const Indices* part : {&p.left, &p.right, &p.sum}) {
      if (part->size() != 1 && !AllKnown(*part)) return false;
    }
    const bool reshapes = p.left.size() != 1 || p.right.size() != 1 || p.sum.size() != 1;
    if (reshapes && !AllKnown(p.batch)) return false;
    const std::vector<ValueId> operands = r_.node(n_).inputs;
    const ValueId a =
        Arranged(operands[0], plan_.operands[0], {&p.batch, &p.left, &p.sum}, reshapes);
    const ValueId b = a == kNoValue ? a
                                    : Arranged(operands[1], plan_.operands[1],
                                               {&p.batch, &p.sum, &p.right}, reshapes);
    if (b == kNoValue) return false;
    const Indices order = Joined({&p.batch, &p.left, &p.right});
    const bool sorted =
        std::is_sorted(order.begin(), order.end());  // output axes are the first indices, in order
    if (!reshapes && sorted) return r_.Replace(n_, "MatMul", {a, b}, {});
    ValueId product = r_.Add(n_, "MatMul", {a, b}, {});
    if (product == kNoValue) return false;
    if (reshapes && sorted)
      return r_.Replace(n_, "Reshape", {product, Shape(ExtentsOf(order))}, {});
    if (reshapes) product = r_.Add(n_, "Reshape", {product, Shape(ExtentsOf(order))}, {});
    if (product == kNoValue) return false;
    std::vector<int64_t> perm;
    for (int axis = 0; axis < plan_.output_rank; ++axis)
      perm.push_back(std::find(order.begin(), order.end(), axis) - order.begin());
    return r_.Replace(n_, "Transpose", {product}, {{"perm", std::move(perm)}});
  }

 private:
  bool AllKnown(const Indices& part) const {
    return std::all_of(part.begin(), part.end(),
                       [&](int i) { return IsKnown(plan_.extents[static_cast<size_t>(i)]); });
  }
  static Indices Joined(std::initializer_list<const Indices*> parts) {
    Indices all;
    for (const Indices* part : parts) all.insert(all.end(), part->begin(), part->end());
    return all;
  }
  std::vector<int64_t> ExtentsOf(const Indices& indices) const {
    std::vector<int64_t> extents;
    for (const int i : indices) extents.push_back(plan_.extents[static_cast<size_t>(i)]);
    return extents;
  }
  ValueId Shape(const std::vector<int64_t>& dims) {
    return r_.AddConstant("einsum.shape", ConstTensor::Int64s(dims));
  }

  // Returns the operand with its dims in the order of the parts; with `reshape`, one dim for each
  // of the last two parts.
  ValueId Arranged(ValueId v, const Indices& operand, std::initializer_list<const Indices*> parts,
                   bool reshape) {
    std::vector<int64_t> perm;
    for (const int i : Joined(parts))
      perm.push_back(std::find(operand.begin(), operand.end(), i) - operand.begin());
    if (!std::is_sorted(perm.begin(), perm.end()))
      v = r_.Add(n_, "Transpose", {v}, {{"perm", std::move(perm)}});
    if (!reshape || v == kNoValue) return v;
    std::vector<int64_t> dims = ExtentsOf(**parts.begin());
    for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
      int64_t extent = 1;
      for (const int64_t e : ExtentsOf(**part)) extent *= e;
      dims.push_back(extent);
    }
    return r_.Add(n_, "Reshape", {v, Shape(dims)}, {});
  }

  Rewriter& r_;
  const size_t n_;
  const EinsumPlan& plan_;
};

void Lower(Rewriter* r, size_t n) {
  const NodeView view(r->graph(), r->node(n));
  const OpView& op = view.op();
  if (op.input_count() != 2) return;
  const Type *a = &op.input(0), *b = &op.input(1);
  if (!a->rank_known || !b->rank_known || !IsFloat(a->dtype)) return;
  const Type* operands[] = {a, b};
  const auto plan = PlanEinsum(op.String("equation"), operands);
  if (!plan.ok() || !FollowsIndices(plan->operands[0], *a, *plan) ||
      !FollowsIndices(plan->operands[1], *b, *plan))
    return;
  const auto product = ProductOf(*plan);
  if (!product || product->batch.size() + 2 > kMaxRank) return;
  (void)Lowering(r, n, *plan).Run(*product);
}

}  // namespace

Status LowerEinsum(const PassContext& context, Graph* graph) {
  const auto is_einsum = [](const Node& node) { return node.op == "Einsum"; };
  if (std::none_of(graph->nodes.begin(), graph->nodes.end(), is_einsum)) return OkStatus();
  Rewriter r(context, graph);
  const size_t count = r.node_count();
  for (size_t n = 0; n < count; ++n) {
    if (r.Is(n, "Einsum")) Lower(&r, n);
  }
  return OkStatus();
}

}  // namespace msrt
