// The taps of a convolution along one spatial axis, as data: outputs that read the same taps form
// classes, so that an inner loop runs over outputs of one class and never asks whether a tap is
// outside the input.
#pragma once

#include <vector>

#include "ops/window.h"

namespace msrt::cpu {

// Outputs first, first + step, ... of which output i reads the kernel positions tap, tap +
// tap_step, ... from the inputs in + i * in_step, in + i * in_step + in_tap_step, ...
struct TapClass {
  int64_t first = 0, step = 1, count = 0;
  int64_t tap = 0, tap_step = 1, taps = 0;
  int64_t in = 0, in_step = 1, in_tap_step = 1;

  int64_t InputOf(int64_t output) const { return in + (output - first) / step * in_step; }
};

struct AxisTaps {
  int64_t in = 1, out = 1, kernel = 1;
  std::vector<TapClass> classes;
  std::vector<uint32_t> class_of;  // by output

  // Whether output i reads input i and nothing else.
  bool IsIdentity() const {
    return in == out && kernel == 1 && classes.size() == 1 && classes[0].taps == 1 &&
           classes[0].step == 1 && classes[0].in == 0 && classes[0].in_step == 1;
  }
};

AxisTaps TapsOf(const WindowAxis& axis, bool transposed);

}  // namespace msrt::cpu
