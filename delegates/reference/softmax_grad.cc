// SoftmaxGrad and LogSoftmaxGrad: one line of elements along the axis at a time, in double.
#include <cmath>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// Sums weight(dy, y) over a line, then sets each element to f(dy, y, sum).
template <typename Weight, typename F>
Status MapLines(const KernelArgs& args, Weight weight, F f) {
  const TensorView& dy = args.inputs[0];
  if (dy.elements() == 0) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), dy.dims.rank()));
  const Lines along(dy.dims, axis);
  return DispatchFloat(dy.dtype, [&]<typename T>() -> Status {
    const T *d = dy.As<T>(), *y = args.inputs[1].As<T>();
    return ParallelRanges(args.parallel, along.lines(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t first = along.First(line), last = first + along.count * along.inner;
        double sum = 0;
        for (int64_t i = first; i < last; i += along.inner)
          sum += weight(static_cast<double>(d[i]), static_cast<double>(y[i]));
        for (int64_t i = first; i < last; i += along.inner) {
          args.outputs[0].As<T>()[i] =
              FromWide<T>(f(static_cast<double>(d[i]), static_cast<double>(y[i]), sum));
        }
      }
    });
  });
}

Status SoftmaxGrad(const KernelArgs& args) {
  return MapLines(
      args, [](double dy, double y) { return dy * y; },
      [](double dy, double y, double sum) { return y * (dy - sum); });
}

Status LogSoftmaxGrad(const KernelArgs& args) {
  return MapLines(
      args, [](double dy, double) { return dy; },
      [](double dy, double y, double sum) { return dy - std::exp(y) * sum; });
}

constexpr KernelDef kSoftmaxGradKernels[] = {{"msrt", "SoftmaxGrad", SoftmaxGrad},
                                             {"msrt", "LogSoftmaxGrad", LogSoftmaxGrad}};

}  // namespace

std::span<const KernelDef> SoftmaxGradKernels() { return kSoftmaxGradKernels; }

}  // namespace msrt::reference
