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
    const ValueId da = g.SumTo(g.Add("MatMul", {grad, Transposed(g, right)}), left);
    g.Set(0, g.ReshapeTo(da, g.input(0)));
  }
  if (g.wants(1)) {
    const ValueId db = g.SumTo(g.Add("MatMul", {Transposed(g, left), grad}), right);
    g.Set(1, g.ReshapeTo(db, g.input(1)));
  }
  return OkStatus();
}

}  // namespace msrt
