// Gradients of pools: the elements of the gradient are added in double, in row-major order, to the
// elements of X that they depend on.
#include <cmath>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "ops/pool_grad.h"

namespace msrt::reference {
namespace {

using Position = std::array<int64_t, kMaxSpace>;  // in the whole X or Y

// Calls visit(position in X) for the elements of the window of output `at` that are inside X.
template <typename Visit>
void ForEachElement(const PoolGradShape& s, const Position& at, Visit visit) {
  std::array<Interval, kMaxSpace> taps;
  const auto place = [&](size_t axis, int64_t tap) {
    return s.axis[axis].window.start(at[axis]) + tap * s.axis[axis].window.dilation;
  };
  for (size_t i = 0; i < kMaxSpace; ++i) taps[i] = s.axis[i].window.TapsInside(at[i]);
  for (int64_t i = taps[0].begin; i < taps[0].end; ++i) {
    for (int64_t j = taps[1].begin; j < taps[1].end; ++j) {
      for (int64_t k = taps[2].begin; k < taps[2].end; ++k)
        visit(Position{place(0, i), place(1, j), place(2, k)});
    }
  }
}

// Returns the offset of a position within one channel of a piece's part; -1 if it is not in it.
int64_t OffsetIn(const PoolGradShape& s, PoolGradAxis::Part PoolGradAxis::*part,
                 const Position& p) {
  int64_t offset = 0;
  for (size_t i = 0; i < kMaxSpace; ++i) {
    const PoolGradAxis::Part& own = s.axis[i].*part;
    const int64_t at = p[i] - own.begin;
    if (at < 0 || at >= own.extent) return -1;
    offset = offset * own.extent + at;
  }
  return offset;
}

// Calls add(plane, position of an output, gradient, sums of the plane) for each element of the
// gradient, and writes the sums.
template <typename T, typename Add>
Status SumPlanes(const KernelArgs& args, const PoolGradShape& s, Add add) {
  const T* grad = args.inputs[0].As<T>();
  T* out = args.outputs[0].As<T>();
  return ParallelRanges(args.parallel, s.planes, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(s.result_plane()));
    for (int64_t plane = begin; plane < end; ++plane) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const T* value = grad + plane * s.grad_plane();
      const PoolGradAxis::Part &d = s.axis[0].grad, &h = s.axis[1].grad, &w = s.axis[2].grad;
      for (int64_t i = 0; i < d.extent; ++i) {
        for (int64_t j = 0; j < h.extent; ++j) {
          for (int64_t k = 0; k < w.extent; ++k) {
            const Position at{d.begin + i, h.begin + j, w.begin + k};
            add(plane, at, static_cast<double>(*value++), sums.data());
          }
        }
      }
      for (size_t i = 0; i < sums.size(); ++i)
        out[plane * s.result_plane() + static_cast<int64_t>(i)] = static_cast<T>(sums[i]);
    }
  });
}

// The first of equal elements is the maximum, and a NaN is larger than everything, as for MaxPool.
Status RunMaxPoolGrad(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const PoolGradShape s, PoolGradShapeOf(args.op));
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* x = args.inputs[1].As<T>();
    return SumPlanes<T>(args, s, [&](int64_t plane, const Position& at, double grad, double* sums) {
      double best = 0;
      int64_t where = -1;
      bool found = false;
      ForEachElement(s, at, [&](const Position& p) {
        // Every window of a piece made by `localize` is inside its part of X.
        const int64_t offset = OffsetIn(s, &PoolGradAxis::input, p);
        if (offset < 0) return;
        const auto value = static_cast<double>(x[plane * s.input_plane() + offset]);
        if (found && !(value > best || (std::isnan(value) && !std::isnan(best)))) return;
        best = value, found = true;
        where = OffsetIn(s, &PoolGradAxis::result, p);
      });
      if (where >= 0) sums[where] += grad;
    });
  });
}

Status RunAveragePoolGrad(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const PoolGradShape s, PoolGradShapeOf(args.op));
  const bool include_pad = args.op.Int("count_include_pad") != 0;
  const auto count = [&](size_t axis, int64_t at) {
    const WindowAxis& a = s.axis[axis].window;
    return static_cast<double>(
        (include_pad ? a.Taps(at, -a.pad_begin, a.in + a.pad_end) : a.TapsInside(at)).size());
  };
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    return SumPlanes<T>(args, s, [&](int64_t, const Position& at, double grad, double* sums) {
      const double share = grad / (count(0, at[0]) * count(1, at[1]) * count(2, at[2]));
      ForEachElement(s, at, [&](const Position& p) {
        const int64_t offset = OffsetIn(s, &PoolGradAxis::result, p);
        if (offset >= 0) sums[offset] += share;
      });
    });
  });
}

constexpr KernelDef kPoolGradKernels[] = {{"msrt", "MaxPoolGrad", RunMaxPoolGrad},
                                          {"msrt", "AveragePoolGrad", RunAveragePoolGrad}};

}  // namespace

std::span<const KernelDef> PoolGradKernels() { return kPoolGradKernels; }

}  // namespace msrt::reference
