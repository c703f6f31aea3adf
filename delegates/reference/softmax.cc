// Softmax, LogSoftmax and Hardmax: one line of elements along the axis at a time.
#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"

#include <cmath>
#include <limits>

namespace msrt::reference {
namespace {

// The elements along the axis: `count` of them, `stride` apart.
template <typename T>
struct Line {
  T* data;
  int64_t count, stride;
  T& operator[](int64_t i) const { return data[i * stride]; }
};

template <typename T>
double Maximum(Line<const T> x) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < x.count; ++i) maximum = std::fmax(maximum, static_cast<double>(x[i]));
  return maximum;
}

// Returns the sum of exp(x - maximum): at least 1, never overflows. NaN if x has a NaN or infinity.
template <typename T>
double SumOfExponentials(Line<const T> x, double maximum) {
  double sum = 0;
  for (int64_t i = 0; i < x.count; ++i) sum += std::exp(static_cast<double>(x[i]) - maximum);
  return sum;
}

struct Softmax {
  template <typename T>
  void operator()(Line<const T> x, Line<T> y) const {
    const double maximum = Maximum(x), sum = SumOfExponentials(x, maximum);
    for (int64_t i = 0; i < x.count; ++i)
      y[i] = static_cast<T>(std::exp(static_cast<double>(x[i]) - maximum) / sum);
  }
};

struct LogSoftmax {
  template <typename T>
  void operator()(Line<const T> x, Line<T> y) const {
    const double maximum = Maximum(x), log_sum = std::log(SumOfExponentials(x, maximum));
    for (int64_t i = 0; i < x.count; ++i)
      y[i] = static_cast<T>(static_cast<double>(x[i]) - maximum - log_sum);
  }
};

// 1 at the first maximum. A NaN counts as greater than every number, as in NumPy's argmax.
struct Hardmax {
  template <typename T>
  void operator()(Line<const T> x, Line<T> y) const {
    int64_t best = 0;
    for (int64_t i = 1; i < x.count; ++i) {
      const auto candidate = static_cast<double>(x[i]), leader = static_cast<double>(x[best]);
      if (candidate > leader || (std::isnan(candidate) && !std::isnan(leader))) best = i;
    }
    for (int64_t i = 0; i < x.count; ++i) y[i] = static_cast<T>(i == best ? 1.0f : 0.0f);
  }
};

template <typename Function>
Status RunAlongAxis(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const Dims& dims = args.inputs[0].dims;
    if (dims.elements() == 0) return OkStatus();
    const int64_t given = args.op.Int("axis");
    const int axis = static_cast<int>(given < 0 ? given + dims.rank() : given);
    const int64_t outer = dims.product(0, axis), count = dims[axis],
                  inner = dims.product(axis + 1, dims.rank());
    const T* x = args.inputs[0].As<T>();
    T* y = args.outputs[0].As<T>();
    return ParallelRanges(
        args.parallel, outer * inner, 1 + 2048 / count, [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const int64_t first = line / inner * count * inner + line % inner;
            Function()(Line<const T>{x + first, count, inner}, Line<T>{y + first, count, inner});
          }
        });
  });
}

constexpr KernelDef kSoftmaxKernels[] = {
    {"", "Softmax", RunAlongAxis<Softmax>},
    {"", "LogSoftmax", RunAlongAxis<LogSoftmax>},
    {"", "Hardmax", RunAlongAxis<Hardmax>},
};

}  // namespace

std::span<const KernelDef> SoftmaxKernels() { return kSoftmaxKernels; }

}  // namespace msrt::reference
