// The gradient of a convolution's weights: each is a sum in double over images, then the elements
// of the output in row-major order.
#include "delegates/reference/conv.h"
#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

// Returns the outputs of an axis whose tap `tap` is inside the input.
Interval OutputsInside(const WindowAxis& a, int64_t tap) {
  const int64_t first = a.dilation * tap - a.pad_begin;  // what output 0 reads
  const int64_t begin = first >= 0 ? 0 : CeilDiv(-first, a.stride);
  return {begin, std::min(a.out, first >= a.in ? 0 : CeilDiv(a.in - first, a.stride))};
}

// Returns the sum over one image and one pair of channels for the weight at `tap`.
template <typename T>
double SumOfImage(const ConvShape& s, const T* x, const T* grad,
                  const std::array<int64_t, kMaxSpace>& tap) {
  const auto source = [&](size_t axis, int64_t out) {
    return s.axis[axis].start(out) + tap[axis] * s.axis[axis].dilation;
  };
  const Interval depth = OutputsInside(s.axis[0], tap[0]),
                 height = OutputsInside(s.axis[1], tap[1]),
                 width = OutputsInside(s.axis[2], tap[2]);
  double sum = 0;
  for (int64_t i = depth.begin; i < depth.end; ++i) {
    for (int64_t j = height.begin; j < height.end; ++j) {
      const T* row = x + (source(0, i) * s.axis[1].in + source(1, j)) * s.axis[2].in;
      const T* grad_row = grad + (i * s.axis[1].out + j) * s.axis[2].out;
      for (int64_t k = width.begin; k < width.end; ++k)
        sum += static_cast<double>(row[source(2, k)]) * static_cast<double>(grad_row[k]);
    }
  }
  return sum;
}

Status RunConvWeightGrad(const KernelArgs& args) {
  const Dims &x_dims = args.inputs[0].dims, &w_dims = args.outputs[0].dims;
  MSRT_ASSIGN_OR_RETURN(const ConvShape s, ConvShapeOf(args.op, x_dims, w_dims, false));
  const ConvChannels& ch = s.channels;
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T *x = args.inputs[0].As<T>(), *grad = args.inputs[1].As<T>();
    T* out = args.outputs[0].As<T>();
    const auto kernel = [&](int64_t pair) {
      const int64_t m = pair / ch.group_inputs, c = pair % ch.group_inputs;
      const int64_t channel = ch.group_of(m) * ch.group_inputs + c;
      std::array<int64_t, kMaxSpace> tap;
      int64_t index = pair * s.taps;
      for (tap[0] = 0; tap[0] < s.axis[0].kernel; ++tap[0]) {
        for (tap[1] = 0; tap[1] < s.axis[1].kernel; ++tap[1]) {
          for (tap[2] = 0; tap[2] < s.axis[2].kernel; ++tap[2]) {
            double sum = 0;
            for (int64_t n = 0; n < x_dims[0]; ++n) {
              sum += SumOfImage(s, x + (n * x_dims[1] + channel) * s.in_plane,
                                grad + (n * ch.outputs + m) * s.out_plane, tap);
            }
            out[index++] = static_cast<T>(sum);
          }
        }
      }
    };
    const int64_t pairs = ch.outputs * ch.group_inputs;
    return ParallelRanges(args.parallel, pairs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t pair = begin; pair < end; ++pair) kernel(pair);
    });
  });
}

constexpr KernelDef kConvGradKernels[] = {{"msrt", "ConvWeightGrad", RunConvWeightGrad}};

}  // namespace

std::span<const KernelDef> ConvGradKernels() { return kConvGradKernels; }

}  // namespace msrt::reference
