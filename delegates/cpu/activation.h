// Unary functions by the name of their op, alone and as the activation of a fused op.
#pragma once

#include <optional>
#include <string_view>

#include "core/graph/op_view.h"
#include "delegates/cpu/loops.h"

namespace msrt::cpu {

struct Activation {
  std::optional<Unary> function;
  float alpha = 0, beta = 0;

  void Apply(float* x, int64_t count) const {
    if (function) LoopsHere().unary[static_cast<size_t>(*function)](x, x, count, alpha, beta);
  }
};

struct UnaryTime {
  Unary function;
  double nanoseconds;  // an element takes on one core with AVX2
};
// Nothing where there is no function of that name. "GeluTanh" is Gelu with approximate = 'tanh'.
std::optional<UnaryTime> FindUnary(std::string_view name);

// The activation that the attributes of a fused op name; none for ops without one. All of
// kActivations are known.
Activation ActivationOf(const OpView& op);
double ActivationNanoseconds(const OpView& op);

}  // namespace msrt::cpu
