// Gradients of gathers and scatters, which are each other's.
#include <algorithm>
#include <numeric>

#include "ops/grad_positions.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

const Attr kAdding{"reduction", std::string("add")};

}  // namespace

// ScatterND indexes leading dims, so the gathered axis moves to the front.
Status GradGather(GradBuilder& g) {
  const Type data = g.type(g.input(0)), indices = g.type(g.input(1));
  if (!data.rank_known || !indices.rank_known)
    return Unsupported("the ranks of the inputs are not known; declare them");
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(g.op().Int("axis"), data.rank()));
  std::vector<int64_t> grad_perm(static_cast<size_t>(data.rank() - 1 + indices.rank())), back;
  std::iota(grad_perm.begin(), grad_perm.end(), 0);
  std::rotate(grad_perm.begin(), grad_perm.begin() + axis,
              grad_perm.begin() + axis + indices.rank());
  DimList dims(g);
  dims.Add(g.input(0), axis);
  for (int d = 0; d < data.rank(); ++d) {
    if (d != axis) dims.Add(g.input(0), d);
    back.push_back(d < axis ? d + 1 : d == axis ? 0 : d);
  }
  const ValueId sums = g.Add("ScatterND",
                             {ZerosOfDims(g, dims, g.input(0)), WithAxes(g, g.input(1), {-1}),
                              Permuted(g, g.grad(), std::move(grad_perm))},
                             {kAdding});
  g.Set(0, Permuted(g, sums, std::move(back)));
  return OkStatus();
}

Status GradGatherElements(GradBuilder& g) {
  g.Set(0, g.Add("ScatterElements", {g.Zeros(g.input(0)), g.input(1), g.grad()},
                 {{"axis", g.op().Int("axis")}, kAdding}));
  return OkStatus();
}

namespace {

// The tuples of a GatherND with their places in the batch dims, as tuples of a GatherND that has
// none.
ValueId TuplesWithBatch(GradBuilder& g, int batch_dims) {
  const ValueId indices = g.Add("Cast", {g.input(1)}, {{"to", DType::kI64}});
  const int rank = g.type(g.input(1)).rank();
  const ValueId dims = DimList(g).Add(g.input(1), 0, rank - 1).Add(1).list();
  std::vector<ValueId> parts;
  for (int d = 0; d < batch_dims; ++d) {
    std::vector<int64_t> others;
    for (int i = 1; i < rank - d; ++i) others.push_back(i);
    const ValueId places = WithAxes(g, CountAlong(g, g.input(1), d), std::move(others));
    parts.push_back(g.Add("Expand", {places, dims}));
  }
  parts.push_back(indices);
  return Joined(g, std::move(parts), -1);
}

}  // namespace

Status GradGatherND(GradBuilder& g) {
  const auto batch_dims = static_cast<int>(g.op().Int("batch_dims"));
  if (batch_dims > 0 && !g.type(g.input(1)).rank_known)
    return Unsupported("the rank of the indices is not known; declare it");
  const ValueId tuples = batch_dims > 0 ? TuplesWithBatch(g, batch_dims) : g.input(1);
  g.Set(0, g.Add("ScatterND", {g.Zeros(g.input(0)), tuples, g.grad()}, {kAdding}));
  return OkStatus();
}

namespace {

// ScatterElements or ScatterND with the indices of the node, and the gather that reads what it
// writes.
class Scatter {
 public:
  explicit Scatter(GradBuilder& g) : g_(g), elements_(g.op().op() == "ScatterElements") {}

  ValueId Into(ValueId data, ValueId updates, std::string reduction) const {
    AttrList attrs = Axis();
    attrs.Set("reduction", std::move(reduction));
    return g_.Add(elements_ ? "ScatterElements" : "ScatterND", {data, g_.input(1), updates},
                  std::move(attrs));
  }
  ValueId From(ValueId data) const {
    return g_.Add(elements_ ? "GatherElements" : "GatherND", {data, g_.input(1)}, Axis());
  }

 private:
  AttrList Axis() const {
    if (!elements_) return {};
    return {{"axis", g_.op().Int("axis")}};
  }
  GradBuilder& g_;
  bool elements_;
};

// The last update of an element is the one that counts.
void SetOfReplaced(GradBuilder& g, const Scatter& scatter) {
  const ValueId data = g.input(0), updates = g.input(2);
  if (g.wants(0)) g.Set(0, scatter.Into(g.grad(), g.Zeros(updates), "none"));
  if (!g.wants(2)) return;
  const ValueId order = PositionsOf(g, updates);
  const ValueId last = scatter.From(scatter.Into(PositionsOf(g, data), order, "none"));
  g.Set(2, g.Add("Where",
                 {g.Add("Equal", {order, last}), scatter.From(g.grad()), g.Scalar(0, updates)}));
}

// The derivative of a product is that of the other factors: the product without its zeros divided
// by the factor, or zero if another factor is zero.
void SetOfProducts(GradBuilder& g, const Scatter& scatter) {
  const ValueId data = g.input(0), updates = g.input(2);
  const auto is_zero = [&](ValueId v) { return g.Add("Equal", {v, g.Scalar(0, v)}); };
  const auto factor = [&](ValueId v) { return g.Add("Where", {is_zero(v), g.Scalar(1, v), v}); };
  const auto zero_count = [&](ValueId v) {
    return g.Add("Cast", {is_zero(v)}, {{"to", DType::kI64}});
  };
  const ValueId products = scatter.Into(factor(data), factor(updates), "mul");
  const ValueId zeros = scatter.Into(zero_count(data), zero_count(updates), "add");
  const auto derivative = [&](ValueId v, ValueId product, ValueId zeros_of_all, ValueId grad) {
    const ValueId only = g.Add("Equal", {zeros_of_all, zero_count(v)});
    return g.Times(grad, g.Add("Where", {only, g.Over(product, factor(v)), g.Scalar(0, v)}));
  };
  if (g.wants(0)) g.Set(0, derivative(data, products, zeros, g.grad()));
  if (g.wants(2))
    g.Set(2,
          derivative(updates, scatter.From(products), scatter.From(zeros), scatter.From(g.grad())));
}

// All that are equal to the extreme value have equal parts in it.
void SetOfExtremes(GradBuilder& g, const Scatter& scatter) {
  const ValueId data = g.input(0), updates = g.input(2), out = g.output(0);
  const auto is = [&](ValueId v, ValueId extreme) {
    return g.CastTo(g.Add("Equal", {v, extreme}), g.input(0));
  };
  const ValueId of_data = is(data, out), of_updates = is(updates, scatter.From(out));
  const ValueId share = g.Over(g.grad(), scatter.Into(of_data, of_updates, "add"));
  if (g.wants(0)) g.Set(0, g.Times(share, of_data));
  if (g.wants(2)) g.Set(2, g.Times(scatter.From(share), of_updates));
}

}  // namespace

Status GradScatterElements(GradBuilder& g) {
  const Scatter scatter(g);
  const std::string_view reduction = g.op().String("reduction");
  if (reduction == "none") {
    SetOfReplaced(g, scatter);
  } else if (reduction == "add") {
    if (g.wants(0)) g.Set(0, g.grad());
    if (g.wants(2)) g.Set(2, scatter.From(g.grad()));
  } else if (reduction == "mul") {
    SetOfProducts(g, scatter);
  } else {
    SetOfExtremes(g, scatter);
  }
  return OkStatus();
}

Status GradScatterND(GradBuilder& g) { return GradScatterElements(g); }

// `values` are those of the other classes and of the class.
Status GradOneHot(GradBuilder& g) {
  const ValueId one = g.CastTo(g.Ints({0, 1}), g.input(2));
  const ValueId is_class = g.Add("OneHot", {g.input(0), g.input(1), one}, g.op().attrs());
  const auto sum = [&](ValueId v) {
    return g.Add("Reshape", {g.Add("ReduceSum", {v}, {{"keepdims", int64_t{0}}}), g.Ints({1})});
  };
  const ValueId on = sum(g.Times(g.grad(), is_class));
  const ValueId off = g.Minus(sum(g.grad()), on);
  g.Set(2, Joined(g, {off, on}, 0));
  return OkStatus();
}

}  // namespace msrt
