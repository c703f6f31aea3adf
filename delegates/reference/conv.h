// Convolutions by definition: each output element is a sum in double over the input channels of its
// group and the taps of the kernel, in that order. Taps outside the input are skipped, so an
// element's bits do not depend on the piece it is in.
#pragma once

#include "core/base/status.h"
#include "ops/conv.h"
#include "ops/window.h"

namespace msrt::reference {

struct ConvShape {
  ConvChannels channels;
  std::array<WindowAxis, kMaxSpace> axis;
  int64_t in_plane = 1, out_plane = 1,
          taps = 1;  // elements of a channel of X, of Y, and of the kernel
};

inline Result<ConvShape> ConvShapeOf(const OpView& op, const Dims& x, const Dims& w,
                                     bool transposed) {
  const auto kernel = std::span<const int64_t>(w).subspan(2);
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        transposed ? TransposedWindowsOf(op, x, kernel) : WindowsOf(op, x, kernel));
  ConvShape s{.channels = ConvChannelsOf(op, x, w, transposed), .axis = windows.axis};
  for (const WindowAxis& a : s.axis) s.in_plane *= a.in, s.out_plane *= a.out, s.taps *= a.kernel;
  return s;
}

// Returns the sum over one channel of X and its kernel. `taps` are the taps inside the input and
// `start` is the input position of tap 0, along each axis.
template <typename T>
double SumOfChannel(const ConvShape& s, const T* in, const T* kernel, const Interval (&taps)[3],
                    const int64_t (&start)[3]) {
  double sum = 0;
  for (int64_t i = taps[0].begin; i < taps[0].end; ++i) {
    for (int64_t j = taps[1].begin; j < taps[1].end; ++j) {
      const T* row = in + ((start[0] + i * s.axis[0].dilation) * s.axis[1].in + start[1] +
                           j * s.axis[1].dilation) *
                              s.axis[2].in;
      const T* weights = kernel + (i * s.axis[1].kernel + j) * s.axis[2].kernel;
      for (int64_t k = taps[2].begin; k < taps[2].end; ++k) {
        sum += static_cast<double>(row[start[2] + k * s.axis[2].dilation]) *
               static_cast<double>(weights[k]);
      }
    }
  }
  return sum;
}

// The same for a transposed window: tap t contributes to output y from input
// (y + pad_begin - dilation * t) / stride, if that is an integer.
template <typename T>
double SumOfTransposedChannel(const ConvShape& s, const T* in, const T* kernel,
                              const int64_t (&out)[3]) {
  const auto source = [&](size_t axis, int64_t tap) -> int64_t {
    const WindowAxis& a = s.axis[axis];
    const int64_t at = out[axis] + a.pad_begin - a.dilation * tap;
    if (at < 0 || at % a.stride != 0) return -1;
    return at / a.stride < a.in ? at / a.stride : -1;
  };
  double sum = 0;
  for (int64_t i = 0; i < s.axis[0].kernel; ++i) {
    const int64_t z = source(0, i);
    if (z < 0) continue;
    for (int64_t j = 0; j < s.axis[1].kernel; ++j) {
      const int64_t y = source(1, j);
      if (y < 0) continue;
      for (int64_t k = 0; k < s.axis[2].kernel; ++k) {
        const int64_t x = source(2, k);
        if (x < 0) continue;
        const T value = in[(z * s.axis[1].in + y) * s.axis[2].in + x];
        const T weight = kernel[(i * s.axis[1].kernel + j) * s.axis[2].kernel + k];
        sum += static_cast<double>(value) * static_cast<double>(weight);
      }
    }
  }
  return sum;
}

// Computes output channel m of image n: finish(sum, index) makes an element of Y from the sum over
// its group's inputs.
template <typename T, typename Finish>
void ConvPlane(const ConvShape& s, bool transposed, const T* x, const T* w, int64_t n, int64_t m,
               Finish finish) {
  const ConvChannels& ch = s.channels;
  const int64_t group = ch.group_of(m);
  const T* in = x + (n * ch.groups + group) * ch.group_inputs * s.in_plane;
  // The kernels of consecutive input channels are one kernel apart, or, transposed, the kernels of
  // all outputs of the group.
  const int64_t kernel_step = transposed ? ch.group_outputs * s.taps : s.taps;
  const int64_t output_in_group = m + ch.first_output - group * ch.group_outputs;
  const T* kernels =
      transposed ? w + (group * ch.group_inputs * ch.group_outputs + output_in_group) * s.taps
                 : w + m * ch.group_inputs * s.taps;
  int64_t index = (n * ch.outputs + m) * s.out_plane;
  for (int64_t z = 0; z < s.axis[0].out; ++z) {
    for (int64_t y = 0; y < s.axis[1].out; ++y) {
      for (int64_t c = 0; c < s.axis[2].out; ++c, ++index) {
        const int64_t out[3] = {z, y, c};
        const Interval taps[3] = {s.axis[0].TapsInside(z), s.axis[1].TapsInside(y),
                                  s.axis[2].TapsInside(c)};
        const int64_t start[3] = {s.axis[0].start(z), s.axis[1].start(y), s.axis[2].start(c)};
        double sum = 0;
        for (int64_t i = 0; i < ch.group_inputs; ++i) {
          const T* plane = in + i * s.in_plane;
          const T* kernel = kernels + i * kernel_step;
          sum += transposed ? SumOfTransposedChannel(s, plane, kernel, out)
                            : SumOfChannel(s, plane, kernel, taps, start);
        }
        finish(sum, index);
      }
    }
  }
}

}  // namespace msrt::reference
