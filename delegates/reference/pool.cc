// Pools: each output element is computed from the elements of its window that are inside the input,
// in row-major order.
#include <cmath>
#include <limits>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"
#include "ops/window.h"

namespace msrt::reference {
namespace {

struct PoolShape {
  std::array<WindowAxis, kMaxSpace> axis;
  int64_t planes = 0, in_plane = 1,
          out_plane = 1;  // batch x channels; elements of one channel of X and of Y
};

Result<PoolShape> ShapeOf(const KernelArgs& args) {
  const Dims& x = args.inputs[0].dims;
  MSRT_ASSIGN_OR_RETURN(const Windows w, WindowsOf(args.op, x, args.op.Ints("kernel_shape"),
                                                   args.op.Int("ceil_mode") != 0));
  PoolShape s{.axis = w.axis, .planes = x[0] * x[1]};
  for (const WindowAxis& a : s.axis) s.in_plane *= a.in, s.out_plane *= a.out;
  return s;
}

using Point = std::array<int64_t, kMaxSpace>;

// Calls body(plane, output point, output index) for every element of the output.
template <typename Body>
Status ForEachOutput(const KernelArgs& args, const PoolShape& s, Body body) {
  return ParallelRanges(args.parallel, s.planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t index = plane * s.out_plane;
      for (int64_t z = 0; z < s.axis[0].out; ++z) {
        for (int64_t y = 0; y < s.axis[1].out; ++y) {
          for (int64_t x = 0; x < s.axis[2].out; ++x) body(plane, Point{z, y, x}, index++);
        }
      }
    }
  });
}

// Calls visit(input point) for every element of the window of output `at` that is inside the input.
template <typename Visit>
void ForEachTap(const PoolShape& s, const Point& at, Visit visit) {
  std::array<Interval, kMaxSpace> taps;
  Point start;
  for (size_t i = 0; i < kMaxSpace; ++i) {
    taps[i] = s.axis[i].TapsInside(at[i]);
    start[i] = s.axis[i].start(at[i]);
  }
  for (int64_t i = taps[0].begin; i < taps[0].end; ++i) {
    for (int64_t j = taps[1].begin; j < taps[1].end; ++j) {
      for (int64_t k = taps[2].begin; k < taps[2].end; ++k) {
        visit(Point{start[0] + i * s.axis[0].dilation, start[1] + j * s.axis[1].dilation,
                    start[2] + k * s.axis[2].dilation});
      }
    }
  }
}

int64_t PlaneOffset(const PoolShape& s, const Point& p) {
  return (p[0] * s.axis[1].in + p[1]) * s.axis[2].in + p[2];
}

// ---- MaxPool ------------------------------------------------------------------------------------

// Maps an element of this node's input to its flat index in the whole tensor, of which the input
// may be a piece. Column-major order concerns the spatial axes only.
class IndexOf {
 public:
  explicit IndexOf(const KernelArgs& args) : column_major_(args.op.Int("storage_order") == 1) {
    const Dims& x = args.inputs[0].dims;
    const auto whole = args.op.Ints("input_dims"), begin = args.op.Ints("input_origin");
    for (int i = 0; i < x.rank(); ++i) {
      dims_[static_cast<size_t>(i)] = whole.empty() ? x[i] : whole[static_cast<size_t>(i)];
      origin_[static_cast<size_t>(i)] = begin.empty() ? 0 : begin[static_cast<size_t>(i)];
    }
    channels_ = x[1];
  }

  int64_t operator()(int64_t plane, const Point& p) const {
    int64_t index = (plane / channels_ + origin_[0]) * dims_[1] + plane % channels_ + origin_[1];
    index *= dims_[2] * dims_[3] * dims_[4];
    const int64_t z = p[0] + origin_[2], y = p[1] + origin_[3], x = p[2] + origin_[4];
    return index +
           (column_major_ ? z + dims_[2] * (y + dims_[3] * x) : (z * dims_[3] + y) * dims_[4] + x);
  }

 private:
  bool column_major_;
  std::array<int64_t, 2 + kMaxSpace> dims_{1, 1, 1, 1, 1}, origin_{};
  int64_t channels_;
};

// A NaN is larger than everything; of equal elements the first wins.
template <typename T>
bool Exceeds(T value, T best) {
  if constexpr (kIsFloat<T>) {
    const auto v = static_cast<ComputeType<T>>(value), b = static_cast<ComputeType<T>>(best);
    return v > b || (std::isnan(v) && !std::isnan(b));
  } else {
    return value > best;
  }
}

template <typename T>
Status MaxPoolOf(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const PoolShape s, ShapeOf(args));
  const IndexOf index_of(args);
  const T* in = args.inputs[0].As<T>();
  T* out = args.outputs[0].As<T>();
  int64_t* indices = args.has_output(1) ? args.outputs[1].As<int64_t>() : nullptr;
  return ForEachOutput(args, s, [&](int64_t plane, const Point& at, int64_t o) {
    // A window over padding only has no maximum: the result is the least value, without an index.
    T best = Lowest<T>();
    Point where{};
    bool found = false;
    ForEachTap(s, at, [&](const Point& p) {
      const T value = in[plane * s.in_plane + PlaneOffset(s, p)];
      if (found && !Exceeds(value, best)) return;
      best = value, where = p, found = true;
    });
    out[o] = best;
    if (indices != nullptr) indices[o] = found ? index_of(plane, where) : -1;
  });
}

Status RunMaxPool(const KernelArgs& args) {
  const DType type = args.inputs[0].dtype;
  const auto run = [&]<typename T>() -> Status { return MaxPoolOf<T>(args); };
  if (type == DType::kI8) return run.operator()<int8_t>();
  if (type == DType::kU8) return run.operator()<uint8_t>();
  return DispatchFloat(type, run);
}

// ---- AveragePool, LpPool ------------------------------------------------------------------------

// Returns the divisor of an average: the number of elements of the window inside the input, or
// inside the padded input. The part beyond the padding in ceil mode never counts.
double DivisorOf(const PoolShape& s, const Point& at, bool include_pad) {
  double count = 1;
  for (size_t i = 0; i < kMaxSpace; ++i) {
    const WindowAxis& a = s.axis[i];
    count *= static_cast<double>(
        (include_pad ? a.Taps(at[i], -a.pad_begin, a.in + a.pad_end) : a.TapsInside(at[i])).size());
  }
  return count;
}

Status RunAveragePool(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const PoolShape s, ShapeOf(args));
  const bool include_pad = args.op.Int("count_include_pad") != 0;
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* in = args.inputs[0].As<T>();
    T* out = args.outputs[0].As<T>();
    return ForEachOutput(args, s, [&](int64_t plane, const Point& at, int64_t o) {
      double sum = 0;
      ForEachTap(s, at, [&](const Point& p) {
        sum += static_cast<double>(in[plane * s.in_plane + PlaneOffset(s, p)]);
      });
      const double divisor = DivisorOf(s, at, include_pad);
      out[o] =
          static_cast<T>(divisor == 0 ? 0.0 : sum / divisor);  // padding only: an average of zeros
    });
  });
}

Status RunLpPool(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const PoolShape s, ShapeOf(args));
  const double p = static_cast<double>(args.op.Int("p"));
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* in = args.inputs[0].As<T>();
    T* out = args.outputs[0].As<T>();
    return ForEachOutput(args, s, [&](int64_t plane, const Point& at, int64_t o) {
      double sum = 0;
      ForEachTap(s, at, [&](const Point& q) {
        sum +=
            std::pow(std::abs(static_cast<double>(in[plane * s.in_plane + PlaneOffset(s, q)])), p);
      });
      out[o] = static_cast<T>(std::pow(sum, 1 / p));
    });
  });
}

// ---- global pools -------------------------------------------------------------------------------

// Folds each channel with join(accumulated, element), from `start`, then applies `finish`.
template <typename Join, typename Finish>
Status RunGlobal(const KernelArgs& args, double start, Join join, Finish finish) {
  const Dims& x = args.inputs[0].dims;
  const int64_t plane = x.product(2, x.rank());
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* in = args.inputs[0].As<T>();
    T* out = args.outputs[0].As<T>();
    return ParallelRanges(args.parallel, x[0] * x[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        double value = start;
        for (int64_t i = 0; i < plane; ++i)
          value = join(value, static_cast<double>(in[p * plane + i]));
        out[p] = static_cast<T>(finish(value));
      }
    });
  });
}

Status RunGlobalAveragePool(const KernelArgs& args) {
  const Dims& x = args.inputs[0].dims;
  const int64_t own = x.product(2, x.rank());
  const double divisor = static_cast<double>(args.op.Has("divisor") ? args.op.Int("divisor") : own);
  return RunGlobal(
      args, 0.0, [](double a, double b) { return a + b; },
      [&](double sum) { return sum / divisor; });
}

Status RunGlobalMaxPool(const KernelArgs& args) {
  return RunGlobal(
      args, -std::numeric_limits<double>::infinity(),
      [](double a, double b) { return Exceeds(b, a) ? b : a; }, [](double max) { return max; });
}

Status RunGlobalLpPool(const KernelArgs& args) {
  const double p = static_cast<double>(args.op.Int("p"));
  return RunGlobal(
      args, 0.0, [&](double sum, double v) { return sum + std::pow(std::abs(v), p); },
      [&](double sum) { return std::pow(sum, 1 / p); });
}

constexpr KernelDef kPoolKernels[] = {
    {"", "MaxPool", RunMaxPool},
    {"", "AveragePool", RunAveragePool},
    {"", "LpPool", RunLpPool},
    {"", "GlobalAveragePool", RunGlobalAveragePool},
    {"", "GlobalMaxPool", RunGlobalMaxPool},
    {"", "GlobalLpPool", RunGlobalLpPool},
};

}  // namespace

std::span<const KernelDef> PoolKernels() { return kPoolKernels; }

}  // namespace msrt::reference
