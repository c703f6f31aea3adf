// Gradients of elementwise ops with two or more inputs, which broadcast.
#include "ops/grad_builder.h"
#include "ops/gradients.h"

namespace msrt {

Status GradAdd(GradBuilder& g) {
  for (size_t i = 0; i < 2; ++i) {
    if (g.wants(i)) g.SetSummed(i, g.grad());
  }
  return OkStatus();
}

Status GradSub(GradBuilder& g) {
  if (g.wants(0)) g.SetSummed(0, g.grad());
  if (g.wants(1)) g.SetSummed(1, g.Negative(g.grad()));
  return OkStatus();
}

Status GradMul(GradBuilder& g) {
  if (g.wants(0)) g.SetSummed(0, g.Times(g.grad(), g.input(1)));
  if (g.wants(1)) g.SetSummed(1, g.Times(g.grad(), g.input(0)));
  return OkStatus();
}

Status GradDiv(GradBuilder& g) {
  const ValueId by_divisor = g.Over(g.grad(), g.input(1));
  if (g.wants(0)) g.SetSummed(0, by_divisor);
  if (g.wants(1)) g.SetSummed(1, g.Negative(g.Times(by_divisor, g.output(0))));
  return OkStatus();
}

// x = n * b + y with an integer n.
Status GradMod(GradBuilder& g) {
  if (g.wants(0)) g.SetSummed(0, g.grad());
  if (g.wants(1)) {
    const ValueId n = g.Add("Round", {g.Over(g.Minus(g.input(0), g.output(0)), g.input(1))});
    g.SetSummed(1, g.Negative(g.Times(g.grad(), n)));
  }
  return OkStatus();
}

// e * x^(e - 1) and y * log(x). An exponent of zero has a slope of zero, also at x = 0, and so has
// a base of zero; without the exceptions both would be 0 * infinity.
Status GradPow(GradBuilder& g) {
  const ValueId x = g.input(0), e = g.CastTo(g.input(1), x);
  const auto replace_zeros = [&](ValueId v) {
    return g.Add("Where", {g.Add("Equal", {v, g.Scalar(0, v)}), g.Scalar(1, v), v});
  };
  if (g.wants(0)) {
    const ValueId power = g.Add("Pow", {x, g.Plus(replace_zeros(e), -1)});
    g.SetSummed(0, g.Times(g.grad(), g.Times(e, power)));
  }
  if (g.wants(1)) {
    const ValueId slope = g.Times(g.output(0), g.Add("Log", {replace_zeros(x)}));
    g.SetSummed(1, g.CastTo(g.Times(g.grad(), slope), g.input(1)));
  }
  return OkStatus();
}

// Inputs that are equally large share the gradient.
Status GradMax(GradBuilder& g) {
  const size_t count = g.op().input_count();
  if (count == 1) {
    g.Set(0, g.grad());
    return OkStatus();
  }
  std::vector<ValueId> chosen(count);
  ValueId ties = kNoValue;
  for (size_t i = 0; i < count; ++i) {
    chosen[i] = g.Add("Equal", {g.input(i), g.output(0)});
    const ValueId one = g.CastTo(chosen[i], g.grad());
    ties = i == 0 ? one : g.Plus(ties, one);
  }
  const ValueId share = g.Over(g.grad(), ties);
  for (size_t i = 0; i < count; ++i) {
    if (g.wants(i)) g.SetSummed(i, g.Add("Where", {chosen[i], share, g.Scalar(0, share)}));
  }
  return OkStatus();
}

Status GradSum(GradBuilder& g) {
  for (size_t i = 0; i < g.op().input_count(); ++i) {
    if (g.wants(i)) g.SetSummed(i, g.grad());
  }
  return OkStatus();
}

Status GradMean(GradBuilder& g) {
  const size_t count = g.op().input_count();
  const ValueId share = g.Times(g.grad(), 1 / static_cast<double>(count));
  for (size_t i = 0; i < count; ++i) {
    if (g.wants(i)) g.SetSummed(i, share);
  }
  return OkStatus();
}

Status GradPRelu(GradBuilder& g) {
  const ValueId x = g.input(0), negative = g.Add("Less", {x, g.Scalar(0, x)});
  if (g.wants(0)) g.Set(0, g.Add("Where", {negative, g.Times(g.grad(), g.input(1)), g.grad()}));
  if (g.wants(1)) {
    const ValueId scaled = g.Times(g.grad(), x);
    g.SetSummed(1, g.Add("Where", {negative, scaled, g.Scalar(0, scaled)}));
  }
  return OkStatus();
}

Status GradWhere(GradBuilder& g) {
  const ValueId condition = g.input(0), zero = g.Scalar(0, g.grad());
  if (g.wants(1)) g.SetSummed(1, g.Add("Where", {condition, g.grad(), zero}));
  if (g.wants(2)) g.SetSummed(2, g.Add("Where", {condition, zero, g.grad()}));
  return OkStatus();
}

}  // namespace msrt
