// Reductions with plain loops. Every output element folds its inputs in row-major order, so it does
// not depend on where a piece of the work begins.
#include <algorithm>
#include <cmath>
#include <limits>

#include "delegates/reference/broadcast.h"
#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// ---- offsets of the elements of one output element
// -----------------------------------------------

// Dims and strides of the kept and of the reduced axes; neighbours with the same role are merged,
// so the loops below are long. The last reduced axis is separate: rows of `columns` elements,
// `column_stride` apart.
struct Walk {
  Dims kept_dims, kept_strides, row_dims, row_strides;
  int64_t columns = 1,
          column_stride = 1;  // a reduction over no axes is one over an axis of extent 1
};

Walk MakeWalk(const Dims& dims, const std::vector<int>& reduced_axes) {
  Walk w;
  const Dims strides = RowMajorStrides(dims);
  bool previous_reduced = false;
  for (int i = 0; i < dims.rank(); ++i) {
    const bool reduced =
        std::find(reduced_axes.begin(), reduced_axes.end(), i) != reduced_axes.end();
    Dims& role_dims = reduced ? w.row_dims : w.kept_dims;
    Dims& role_strides = reduced ? w.row_strides : w.kept_strides;
    if (i > 0 && reduced == previous_reduced) {
      const int last = role_dims.rank() - 1;
      role_dims[last] *= dims[i];
      role_strides[last] = strides[i];
    } else {
      role_dims.push_back(dims[i]);
      role_strides.push_back(strides[i]);
    }
    previous_reduced = reduced;
  }
  if (!w.row_dims.empty()) {
    w.columns = w.row_dims.back();
    w.column_stride = w.row_strides.back();
    w.row_dims.erase(w.row_dims.rank() - 1);
    w.row_strides.erase(w.row_strides.rank() - 1);
  }
  return w;
}

// The elements that one output element folds: each(visit) calls visit(x) for all of them in
// row-major order.
template <typename T>
class Elements {
 public:
  Elements(const T* first, const Walk& walk) : first_(first), walk_(walk) {}
  template <typename Visit>
  void operator()(Visit visit) const {
    const int64_t rows = walk_.columns == 0 ? 0 : walk_.row_dims.elements();
    for (int64_t row = 0; row < rows; ++row) {
      const T* p = first_ + OffsetOf(row, walk_.row_dims, walk_.row_strides);
      for (int64_t i = 0; i < walk_.columns; ++i) visit(p[i * walk_.column_stride]);
    }
  }

 private:
  const T* first_;
  const Walk& walk_;
};

// ---- the folds ----------------------------------------------------------------------------------

struct Sum {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    Wide<T> sum = 0;
    each([&](T x) { sum += ToWide(x); });
    return FromWide<T>(sum);
  }
};

// The mean of integers is rounded towards zero; the mean of no integers is 0.
struct Mean {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t count) {
    Wide<T> sum = 0;
    each([&](T x) { sum += ToWide(x); });
    if constexpr (kIsFloat<T>) return FromWide<T>(sum / static_cast<double>(count));
    else if (count == 0) return 0;
    else return static_cast<T>(static_cast<SumType<T>>(sum) / static_cast<SumType<T>>(count));
  }
};

struct Prod {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    Wide<T> product = 1;
    each([&](T x) { product *= ToWide(x); });
    return FromWide<T>(product);
  }
};

struct L1 {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    Wide<T> sum = 0;
    each([&](T x) { sum += x < T(0) ? -ToWide(x) : ToWide(x); });
    return FromWide<T>(sum);
  }
};

struct SumSquare {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    Wide<T> sum = 0;
    each([&](T x) { sum += ToWide(x) * ToWide(x); });
    return FromWide<T>(sum);
  }
};

struct Max {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    T greatest = Lowest<T>();
    each([&](T x) { greatest = GreaterOf(greatest, x); });
    return greatest;
  }
};

struct Min {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    T least = Highest<T>();
    each([&](T x) { least = LesserOf(least, x); });
    return least;
  }
};

struct L2 {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    double sum = 0;
    each([&](T x) { sum += static_cast<double>(x) * static_cast<double>(x); });
    return FromDouble<T>(std::sqrt(sum));
  }
};

struct LogSum {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    double sum = 0;
    each([&](T x) { sum += static_cast<double>(x); });
    return FromDouble<T>(std::log(sum));
  }
};

// Subtracts the greatest element before exp, which then cannot overflow. If that element is
// infinite, it is the result.
struct LogSumExp {
  template <typename T, typename Each>
  static T Of(const Each& each, int64_t) {
    double greatest = -std::numeric_limits<double>::infinity();
    each([&](T x) { greatest = GreaterOf(greatest, static_cast<double>(x)); });
    if (!std::isfinite(greatest)) return FromDouble<T>(greatest);
    double sum = 0;
    each([&](T x) { sum += std::exp(static_cast<double>(x) - greatest); });
    return FromDouble<T>(greatest + std::log(sum));
  }
};

// ---- the kernels --------------------------------------------------------------------------------

Result<std::vector<int>> ReducedAxes(const KernelArgs& args) {
  const int rank = args.inputs[0].dims.rank();
  std::vector<int> axes;
  for (int64_t given : args.IntsFrom("axes", 1)) {
    MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(given, rank));
    axes.push_back(axis);
  }
  if (axes.empty() && args.op.Int("noop_with_empty_axes") == 0) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  return axes;
}

template <typename Fold>
Status ReduceOver(const KernelArgs& args, const std::vector<int>& axes) {
  const TensorView &data = args.inputs[0], &out = args.outputs[0];
  const Walk walk = MakeWalk(data.dims, axes);
  const int64_t outputs = walk.kept_dims.elements(), own = walk.row_dims.elements() * walk.columns,
                count = args.op.Has("divisor") ? args.op.Int("divisor") : own;
  // Axes from an input may differ from those that the output was sized for.
  if (outputs != out.elements())
    return InvalidArgument("axes leave ", outputs, " elements, but the output has dims ", out.dims);

  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(own, 1));
  return Dispatch(data.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, outputs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* first = data.As<T>() + OffsetOf(i, walk.kept_dims, walk.kept_strides);
        out.As<T>()[i] = Fold::template Of<T>(Elements<T>(first, walk), count);
      }
    });
  });
}

template <typename Fold>
Status Reduce(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const auto axes, ReducedAxes(args));
  return ReduceOver<Fold>(args, axes);
}

// The axes along which the output broadcasts to the value.
Status SumTo(const KernelArgs& args) {
  const Dims &in = args.inputs[0].dims, &out = args.outputs[0].dims;
  const int extra = in.rank() - out.rank();
  std::vector<int> axes;
  for (int d = 0; d < in.rank(); ++d) {
    if (d < extra || out[d - extra] != in[d]) axes.push_back(d);
  }
  return ReduceOver<Sum>(args, axes);
}

template <typename T>
void CumSumLine(const T* x, T* y, int64_t count, int64_t step, bool exclusive, bool reverse) {
  Wide<T> sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = (reverse ? count - 1 - i : i) * step;
    const Wide<T> before = sum;
    sum += ToWide(x[at]);
    y[at] = FromWide<T>(exclusive ? before : sum);
  }
}

Status CumSum(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int64_t given = args.op.Has("axis")
                            ? args.op.Int("axis")
                            : IntValues(args.inputs[1].dtype, args.inputs[1].data, 1)[0];
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(given, x.dims.rank()));
  const bool exclusive = args.op.Int("exclusive") != 0, reverse = args.op.Int("reverse") != 0;
  const Lines along(x.dims, axis);
  return DispatchNumber(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, along.lines(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t first = along.First(line);
        CumSumLine(x.As<T>() + first, y.As<T>() + first, along.count, along.inner, exclusive,
                   reverse);
      }
    });
  });
}

constexpr KernelDef kReduceKernels[] = {
    {"", "ReduceSum", Reduce<Sum>},
    {"", "ReduceMean", Reduce<Mean>},
    {"", "ReduceMax", Reduce<Max>},
    {"", "ReduceMin", Reduce<Min>},
    {"", "ReduceProd", Reduce<Prod>},
    {"", "ReduceL1", Reduce<L1>},
    {"", "ReduceL2", Reduce<L2>},
    {"", "ReduceLogSum", Reduce<LogSum>},
    {"", "ReduceLogSumExp", Reduce<LogSumExp>},
    {"", "ReduceSumSquare", Reduce<SumSquare>},
    {"", "CumSum", CumSum},
    {"msrt", "SumTo", SumTo},
};

}  // namespace

std::span<const KernelDef> ReduceKernels() { return kReduceKernels; }

}  // namespace msrt::reference
