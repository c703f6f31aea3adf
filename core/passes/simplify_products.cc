#include "core/passes/simplify_products.h"

#include <algorithm>
#include <numeric>

#include "core/passes/rewrite.h"
#include "core/passes/symbolic_shapes.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// A MatMul or Gemm in the form of msrt.FusedMatMul.
struct Product {
  ValueId a = kNoValue, b = kNoValue, bias = kNoValue;
  bool trans_a = false, trans_b = false;
  double alpha = 1;
};

// Products of integers and of vectors, and a scaled C, have no fused form.
std::optional<Product> ProductAt(const Rewriter& r, size_t n) {
  if (!r.Is(n, "MatMul") && !r.Is(n, "Gemm")) return std::nullopt;
  const Node& node = r.node(n);
  const Type &a = r.type(node.inputs[0]), &b = r.type(node.inputs[1]);
  if (!IsFloat(a.dtype) || !a.rank_known || !b.rank_known || a.rank() < 2 || b.rank() < 2)
    return std::nullopt;
  Product p{node.inputs[0], node.inputs[1]};
  if (node.op == "MatMul") return p;
  const NodeView view(r.graph(), node);
  const OpView& op = view.op();
  if (op.has_input(2) && op.Float("beta") != 1) return std::nullopt;
  p.bias = op.has_input(2) ? node.inputs[2] : kNoValue;
  p.trans_a = op.Int("transA") != 0, p.trans_b = op.Int("transB") != 0;
  p.alpha = op.Float("alpha");
  return p;
}

// Replaces node `n` by the product.
bool Emit(Rewriter* r, size_t n, const Product& p) {
  std::vector<ValueId> inputs{p.a, p.b};
  if (p.bias != kNoValue) inputs.push_back(p.bias);
  AttrList attrs{
      {"transA", int64_t{p.trans_a}}, {"transB", int64_t{p.trans_b}}, {"alpha", p.alpha}};
  return r->Replace(n, "FusedMatMul", std::move(inputs), std::move(attrs), "msrt");
}

// Returns the value whose last two dims a Transpose swaps to make `v`, or kNoValue.
ValueId UntransposedSource(const Rewriter& r, ValueId v) {
  const auto n = r.Producer(v, "Transpose");
  if (!n) return kNoValue;
  const NodeView view(r.graph(), r.node(*n));
  const auto perm = view.op().Ints("perm");
  const auto rank = static_cast<size_t>(r.type(v).rank());
  std::vector<int64_t> swap(rank);
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[rank - 1], swap[rank - 2]);
  // Without perm all dims are reversed.
  const bool swaps =
      perm.empty() ? rank == 2 : std::equal(perm.begin(), perm.end(), swap.begin(), swap.end());
  return swaps ? r.node(*n).inputs[0] : kNoValue;
}

// A Transpose that other nodes need runs anyway.
bool IsWorthFolding(const Rewriter& r, ValueId transposed, ValueId source) {
  return r.constant(source) != nullptr || r.uses(transposed) == 1;
}

bool FoldTransposes(Rewriter* r, size_t n) {
  auto p = ProductAt(*r, n);
  if (!p) return false;
  bool any = false;
  if (const ValueId b = UntransposedSource(*r, p->b);
      b != kNoValue && IsWorthFolding(*r, p->b, b)) {
    p->b = b;
    p->trans_b = !p->trans_b;
    any = true;
  }
  // A constant B is packed for contiguous rows of A, which saves more than a Transpose of A costs.
  if (const ValueId a = UntransposedSource(*r, p->a);
      a != kNoValue && r->constant(p->b) == nullptr && IsWorthFolding(*r, p->a, a)) {
    p->a = a;
    p->trans_a = !p->trans_a;
    any = true;
  }
  return any && Emit(r, n, *p);
}

// Folds Reshape `n`, which unflattens rows after a matrix product, into the product.
bool UnflattenRows(Rewriter* r, const ProvenDims& proven, size_t n) {
  const ValueId result = r->node(n).inputs[0], out = r->node(n).outputs[0];
  const auto product = r->Producer(result);
  if (!product || r->uses(result) != 1) return false;
  auto p = ProductAt(*r, *product);
  if (!p || p->trans_a || r->type(p->b).rank() != 2) return false;
  const auto flatten = r->Producer(p->a, "Reshape");
  if (!flatten || r->type(p->a).rank() != 2) return false;
  const ValueId x = r->node(*flatten).inputs[0];
  const int rank = r->type(x).rank();
  if (!r->type(x).rank_known || !r->type(out).rank_known || r->type(out).rank() != rank || rank < 2)
    return false;
  // A C of several rows has one for each flattened row.
  if (p->bias != kNoValue && r->type(p->bias).rank() > 1) return false;
  if (!proven.Equal(x, rank - 1, p->a, 1) || !proven.Equal(out, rank - 1, result, 1)) return false;
  for (int i = 0; i + 1 < rank; ++i) {
    if (!proven.Equal(x, i, out, i)) return false;
  }
  p->a = x;
  return Emit(r, n, *p);
}

}  // namespace

Status SimplifyProducts(const PassContext& context, Graph* graph) {
  const auto has = [&](std::string_view op) {
    return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                       [&](const Node& node) { return node.op == op; });
  };
  if ((!has("MatMul") && !has("Gemm")) || (!has("Transpose") && !has("Reshape"))) return OkStatus();
  const ProvenDims proven(*graph);
  Rewriter r(context, graph);
  const size_t count = r.node_count();
  for (size_t n = 0; n < count; ++n) {
    if (r.Is(n, "Reshape")) UnflattenRows(&r, proven, n);
  }
  for (size_t n = 0; n < count; ++n) FoldTransposes(&r, n);
  return OkStatus();
}

}  // namespace msrt
