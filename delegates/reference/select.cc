// ArgMax, ArgMin and TopK with plain loops over the lines along the op's axis.
#include <algorithm>
#include <numeric>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// ---- ArgMax, ArgMin -----------------------------------------------------------------------------

struct Greater {
  template <typename T>
  static bool Beats(T a, T b) {
    return a > b;
  }
};
struct Less {
  template <typename T>
  static bool Beats(T a, T b) {
    return a < b;
  }
};

// Returns the first or the last of the best. As in NumPy a NaN beats every number, for both orders,
// so that it is not overlooked.
template <typename Order, typename T>
int64_t BestOf(const T* line, int64_t count, int64_t step, bool select_last) {
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    const T x = line[i * step], y = line[best * step];
    const bool beats = IsNan(x) ? !IsNan(y) : Order::template Beats<T>(x, y);
    const bool ties = IsNan(x) ? IsNan(y) : x == y;
    if (beats || (ties && select_last)) best = i;
  }
  return best;
}

template <typename Order>
Status Arg(const KernelArgs& args) {
  const TensorView &data = args.inputs[0], &out = args.outputs[0];
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), data.dims.rank()));
  const Lines along(data.dims, axis);
  const bool select_last = args.op.Int("select_last_index") != 0;
  return DispatchNumber(data.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, along.lines(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        out.As<int64_t>()[line] =
            BestOf<Order>(data.As<T>() + along.First(line), along.count, along.inner, select_last);
      }
    });
  });
}

// ---- TopK ---------------------------------------------------------------------------------------

// A total order for any data: NaN is greater than every number, and of equals the lower index comes
// first. Unsorted results have the same order, which ONNX allows.
template <typename T>
class Before {
 public:
  Before(const T* line, int64_t step, bool largest) : line_(line), step_(step), largest_(largest) {}
  bool operator()(int64_t i, int64_t j) const {
    const T x = line_[i * step_], y = line_[j * step_];
    const bool less = IsNan(y) ? !IsNan(x) : x < y, greater = IsNan(x) ? !IsNan(y) : x > y;
    if (less || greater) return largest_ ? greater : less;
    return i < j;
  }

 private:
  const T* line_;
  int64_t step_;
  bool largest_;
};

Status TopK(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), x.dims.rank()));
  const Lines along(x.dims, axis);
  const bool largest = args.op.Int("largest") != 0, wants_values = args.has_output(0),
             wants_indices = args.has_output(1);
  if (!wants_values && !wants_indices) return OkStatus();
  const Lines chosen_along(args.outputs[wants_values ? 0 : 1].dims, axis);
  const int64_t k = chosen_along.count;
  if (k > along.count)
    return InvalidArgument("k = ", k, ", must be at most ", along.count, ", the extent of axis ",
                           axis);

  return DispatchNumber(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, along.lines(), 16, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(static_cast<size_t>(along.count));
      for (int64_t line = begin; line < end; ++line) {
        const T* from = x.As<T>() + along.First(line);
        std::iota(order.begin(), order.end(), int64_t{0});
        std::partial_sort(order.begin(), order.begin() + k, order.end(),
                          Before<T>(from, along.inner, largest));
        const int64_t to = chosen_along.First(line);
        for (int64_t i = 0; i < k; ++i) {
          const int64_t chosen = order[static_cast<size_t>(i)];
          if (wants_values)
            args.outputs[0].As<T>()[to + i * along.inner] = from[chosen * along.inner];
          if (wants_indices) args.outputs[1].As<int64_t>()[to + i * along.inner] = chosen;
        }
      }
    });
  });
}

constexpr KernelDef kSelectKernels[] = {
    {"", "ArgMax", Arg<Greater>},
    {"", "ArgMin", Arg<Less>},
    {"", "TopK", TopK},
};

}  // namespace

std::span<const KernelDef> SelectKernels() { return kSelectKernels; }

}  // namespace msrt::reference
