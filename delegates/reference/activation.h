// The activations of fused ops (ops/activation.h) on one element, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/graph/op_view.h"

namespace msrt::reference {

class Activation {
 public:
  Activation() = default;  // none
  explicit Activation(const OpView& op)
      : name_(op.String("activation")),
        alpha_(op.Float("activation_alpha")),
        beta_(op.Float("activation_beta")) {}

  double operator()(double x) const {
    if (name_.empty()) return x;
    if (name_ == "Relu") return x < 0 ? 0.0 : x;  // keeps NaN
    if (name_ == "LeakyRelu") return x < 0 ? alpha_ * x : x;
    if (name_ == "Sigmoid") return 1 / (1 + std::exp(-x));
    if (name_ == "Tanh") return std::tanh(x);
    if (name_ == "HardSigmoid") return std::clamp(alpha_ * x + beta_, 0.0, 1.0);
    if (name_ == "HardSwish") return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    if (name_ == "Clip") return x < alpha_ ? alpha_ : x > beta_ ? beta_ : x;
    if (name_ == "Gelu") return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
    if (name_ == "GeluTanh")
      return 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    if (name_ == "Elu") return x < 0 ? alpha_ * std::expm1(x) : x;
    if (name_ == "Swish") return x / (1 + std::exp(-alpha_ * x));
    if (name_ == "Mish") return x * std::tanh(Softplus(x));
    return Softplus(x);
  }

 private:
  static double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
  std::string_view name_;
  double alpha_ = 0, beta_ = 0;
};

}  // namespace msrt::reference
