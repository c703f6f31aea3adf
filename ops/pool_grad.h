// The geometry of the gradients of pools, for a whole node and for a piece of one.
#pragma once

#include "ops/op_def.h"
#include "ops/window.h"

namespace msrt {

// One spatial axis of msrt.MaxPoolGrad or msrt.AveragePoolGrad. Positions are those in the whole
// tensors; a piece has the part [begin, begin + extent) of each.
struct PoolGradAxis {
  WindowAxis window;  // of the whole pool
  struct Part {
    int64_t begin = 0, extent = 1;
  };
  Part grad;    // the gradient of Y, by outputs of the pool
  Part input;   // X, by inputs of the pool; MaxPoolGrad only
  Part result;  // the gradient of X, by inputs of the pool
};

struct PoolGradShape {
  int rank = 0;
  int64_t planes = 1;  // batch x channels of the piece
  // Axes beyond rank have extent 1, so a kernel may always loop over three.
  std::array<PoolGradAxis, kMaxSpace> axis;
  int64_t grad_plane() const {
    return axis[0].grad.extent * axis[1].grad.extent * axis[2].grad.extent;
  }
  int64_t input_plane() const {
    return axis[0].input.extent * axis[1].input.extent * axis[2].input.extent;
  }
  int64_t result_plane() const {
    return axis[0].result.extent * axis[1].result.extent * axis[2].result.extent;
  }
};

// Requires concrete types.
Result<PoolGradShape> PoolGradShapeOf(const OpView& op);

}  // namespace msrt
