// What a convolution's attributes are in the library's words, for f32 and for integers.
#pragma once

#include "delegates/onednn/library.h"
#include "ops/window.h"

namespace msrt::onednn {

struct ConvolutionSteps {
  memory::dims strides, dilations, begin, end;
};

inline Result<ConvolutionSteps> ConvolutionStepsOf(const OpView& op, const Dims& x, const Dims& w) {
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(op, x, std::span<const int64_t>(w).subspan(2)));
  ConvolutionSteps steps;
  for (int i = 0; i < windows.rank; ++i) {
    const WindowAxis& axis = windows.axis[static_cast<size_t>(i)];
    steps.strides.push_back(axis.stride), steps.dilations.push_back(axis.dilation - 1);
    steps.begin.push_back(axis.pad_begin), steps.end.push_back(axis.pad_end);
  }
  return steps;
}

// Dims of weights as the library has them: with one for groups where there are several.
inline Dims GroupedWeights(Dims w, int64_t groups) {
  if (groups > 1) {
    w[0] /= groups;
    w.insert(0, groups);
  }
  return w;
}

}  // namespace msrt::onednn
