// The activation of a fused op as a function of the pointwise kernels.
#pragma once

#include <optional>

#include "delegates/cuda/kernels/arguments.h"
#include "delegates/cuda/rule.h"

namespace msrt::cuda {

struct ActivationStep {
  int32_t op = -1;  // PointwiseOp; -1: none
  double a = 0, b = 0;
};

// Of an op of domain msrt, none for all others. Nothing if kernels do not have it.
std::optional<ActivationStep> ActivationOf(const OpView& op);

// Whether it is one operation, which kernels of products and convolutions apply themselves.
bool IsOneOperation(const ActivationStep& step);
// A launch that applies it to output 0 of the op, in place.
Result<std::unique_ptr<BoundKernel>> BindActivation(const OpView& op, const ActivationStep& step,
                                                    Gpu& gpu);
// `main`, and then the activation where `main` has not applied it.
Result<std::unique_ptr<BoundKernel>> WithActivation(Result<std::unique_ptr<BoundKernel>> main,
                                                    const OpView& op, const ActivationStep& step,
                                                    Gpu& gpu);

}  // namespace msrt::cuda
