// The activation of a fused op as a function of the pointwise kernels.
#pragma once

#include <optional>

#include "core/graph/op_view.h"
#include "delegates/cuda/kernels/arguments.h"

namespace msrt::cuda {

struct ActivationStep {
  int32_t op = -1;  // PointwiseOp; -1: none
  double a = 0, b = 0;
};

// Of an op of domain msrt, none for all others. Nothing if kernels do not have it.
std::optional<ActivationStep> ActivationOf(const OpView& op);

}  // namespace msrt::cuda
