// Gradients of matrix products.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {
namespace {

// The last two dims exchanged.
ValueId Transposed(GradBuilder& g, ValueId v) {
  std::vector<int64_t> perm;
  for (int d = 0; d < g.type(v).rank(); ++d) perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return g.Add("Transpose", {v}, {{"perm", std::move(perm)}});
}

// Whether B is one matrix that all batches of A are multiplied with: its gradient is then one
// product of the rows of all batches.
bool IsMatrixOfBatches(const Type& a, const Type& b) {
  return a.rank() > 2 && b.rank() == 2 && b.dims[0] > 0 && b.dims[1] > 0;
}

// The matrices of all batches below each other.
ValueId Rows(GradBuilder& g, ValueId v, int64_t columns) {
  return g.Add("Reshape", {v}, {{"shape", std::vector<int64_t>{-1, columns}}});
}

}  // namespace

// A vector takes part as a matrix of one row (first) or column (second).
Status GradMatMul(GradBuilder& g) {
  const Type a = g.type(g.input(0)), b = g.type(g.input(1));
  if (!a.rank_known || !b.rank_known)
    return Unsupported("the ranks of the inputs are not known; declare them");
  const auto matrix = [&](ValueId v, bool vector, int64_t axis) {
    return vector ? g.Add("Unsqueeze", {v}, {{"axes", std::vector<int64_t>{axis}}}) : v;
  };
  const ValueId left = matrix(g.input(0), a.rank() == 1, 0);
  const ValueId right = matrix(g.input(1), b.rank() == 1, 1);
  ValueId grad = g.grad();
  if (b.rank() == 1) grad = g.Add("Unsqueeze", {grad}, {{"axes", std::vector<int64_t>{-1}}});
  if (a.rank() == 1) grad = g.Add("Unsqueeze", {grad}, {{"axes", std::vector<int64_t>{-2}}});
  if (!g.ok()) return g.status();
  if (g.wants(0)) {
    const ValueId product = g.Add("MatMul", {grad, Transposed(g, right)});
    // One matrix broadcasts to all batches of A, never the other way round.
    const ValueId da = b.rank() <= 2 ? product : g.SumTo(product, left);
    g.Set(0, g.ReshapeTo(da, g.input(0)));
  }
  if (g.wants(1) && IsMatrixOfBatches(a, b)) {
    g.Set(1, g.Add("MatMul", {Transposed(g, Rows(g, left, b.dims[0])), Rows(g, grad, b.dims[1])}));
  } else if (g.wants(1)) {
    const ValueId db = g.SumTo(g.Add("MatMul", {Transposed(g, left), grad}), right);
    g.Set(1, g.ReshapeTo(db, g.input(1)));
  }
  return OkStatus();
}

Status GradGemm(GradBuilder& g) {
  const int64_t trans_a = g.op().Int("transA"), trans_b = g.op().Int("transB");
  const double alpha = g.op().Float("alpha"), beta = g.op().Float("beta");
  const auto product = [&](ValueId a, int64_t transposed_a, ValueId b, int64_t transposed_b) {
    return g.Add("Gemm", {a, b},
                 {{"transA", transposed_a}, {"transB", transposed_b}, {"alpha", alpha}});
  };
  const ValueId a = g.input(0), b = g.input(1), grad = g.grad();
  if (g.wants(0))
    g.Set(0, trans_a != 0 ? product(b, trans_b, grad, 1) : product(grad, 0, b, 1 - trans_b));
  if (g.wants(1))
    g.Set(1, trans_b != 0 ? product(grad, 1, a, trans_a) : product(a, 1 - trans_a, grad, 0));
  if (g.wants(2)) g.SetSummed(2, beta == 1 ? grad : g.Times(grad, beta));
  return OkStatus();
}

Status GradFusedMatMul(GradBuilder& g) {
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (!g.op().input(i).rank_known)
      return Unsupported("the rank of input ", i, " is not known; declare it");
  }
  const ValueId a = g.op().Int("transA") != 0 ? Transposed(g, g.input(0)) : g.input(0);
  const ValueId b = g.op().Int("transB") != 0 ? Transposed(g, g.input(1)) : g.input(1);
  ValueId y = g.Add("MatMul", {a, b});
  if (g.op().Float("alpha") != 1) y = g.Times(y, g.op().Float("alpha"));
  for (size_t i : {size_t{2}, size_t{3}}) {
    if (g.has_input(i)) y = g.Plus(y, g.input(i));
  }
  g.SetByComposition({AddActivation(g, y)});
  return OkStatus();
}

}  // namespace msrt
