// Reductions. Floats are summed in double, which hides behind the memory and makes the order of a
// sum matter little; nevertheless it is fixed: it depends on the reduced axes alone, never on what
// is beside them. Rows: a block for each output, whose threads take every 256th element. Columns: a
// thread for each output, elements in order.
#include "delegates/cuda/kernels/block_reduce.h"
#include "delegates/cuda/kernels/elements.h"
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

// W: double or int64_t. Integers wrap.
template <typename W>
struct Accumulator {
  static constexpr bool kFloat = kIsFloatType<W>;

  DEVICE static W First(const ReduceArgs& args, int32_t op) {
    if (op == kReduceProd) return 1;
    if (op == kReduceMax) {
      if constexpr (kFloat) return -static_cast<W>(INFINITY);
      else return args.least;
    }
    if (op == kReduceMin) {
      if constexpr (kFloat) return static_cast<W>(INFINITY);
      else return args.greatest;
    }
    return 0;
  }

  // Joins two partial results.
  DEVICE static W Join(int32_t op, W a, W b) {
    if (op == kReduceProd) {
      if constexpr (kFloat) return a * b;
      else return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    }
    if (op == kReduceMax) return a == a && (b > a || b != b) ? b : a;
    if (op == kReduceMin) return a == a && (b < a || b != b) ? b : a;
    if constexpr (kFloat) return a + b;
    else return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }

  // What an element adds. `maximum` is that of all elements, for exponentials.
  DEVICE static W Term(int32_t op, W x, W maximum) {
    switch (op) {
      case kReduceL1:
        if constexpr (kFloat) return fabs(x);
        else return static_cast<W>(x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x));
      case kReduceL2:
      case kReduceSumSquare:
        if constexpr (kFloat) return x * x;
        else return static_cast<W>(static_cast<uint64_t>(x) * static_cast<uint64_t>(x));
      case kReduceLogSumExp:
        if constexpr (kFloat) return exp(x - maximum);
        else return x;
      default:
        return x;
    }
  }

  DEVICE static W Finish(const ReduceArgs& args, W x, W maximum) {
    switch (args.op) {
      case kReduceMean:
        if constexpr (kFloat) return x / static_cast<W>(args.divisor);
        else return args.divisor == 0 ? 0 : x / args.divisor;
      case kReduceL2:
        if constexpr (kFloat) return sqrt(x);
        else return x;
      case kReduceLogSum:
        if constexpr (kFloat) return log(x);
        else return x;
      case kReduceLogSumExp:
        if constexpr (kFloat) return maximum + log(x);
        else return x;
      default:
        return x;
    }
  }
};

template <typename W>
DEVICE W ElementAt(const ReduceArgs& args, int64_t first, uint32_t i) {
  return Load<W>(args.type, args.in, first + OffsetIn(args.reduced, args.reduced_strides, i));
}

// Folds the elements from `begin` in steps.
template <typename W>
DEVICE W Fold(const ReduceArgs& args, int32_t op, int64_t first, uint32_t begin, uint32_t step,
              W maximum) {
  using A = Accumulator<W>;
  W sum = A::First(args, op);
  for (uint32_t i = begin; i < args.reduced.elements; i += step)
    sum = A::Join(op, sum, A::Term(op, ElementAt<W>(args, first, i), maximum));
  return sum;
}

template <typename W>
DEVICE void ReduceRows(const ReduceArgs& args) {
  using A = Accumulator<W>;
  for (uint32_t out = blockIdx.x; out < args.kept.elements; out += gridDim.x) {
    const int64_t first = OffsetIn(args.kept, args.kept_strides, out);
    W maximum = 0;
    if (args.op == kReduceLogSumExp) {
      maximum = Fold<W>(args, kReduceMax, first, threadIdx.x, blockDim.x, 0);
      maximum = BlockReduce(maximum, [](W a, W b) { return A::Join(kReduceMax, a, b); });
    }
    W sum = Fold<W>(args, args.op, first, threadIdx.x, blockDim.x, maximum);
    const int32_t op = args.op;
    sum = BlockReduce(sum, [op](W a, W b) { return A::Join(op, a, b); });
    // An infinite or missing maximum is the result itself.
    const bool special = args.op == kReduceLogSumExp && !(maximum - maximum == 0);
    if (threadIdx.x == 0)
      Store<W>(args.type, args.out, out, special ? maximum : A::Finish(args, sum, maximum));
  }
}

template <typename W>
DEVICE void ReduceColumns(const ReduceArgs& args) {
  using A = Accumulator<W>;
  for (uint32_t out = FirstElement(); out < args.kept.elements; out += ElementStep()) {
    const int64_t first = OffsetIn(args.kept, args.kept_strides, out);
    W maximum = 0;
    if (args.op == kReduceLogSumExp) maximum = Fold<W>(args, kReduceMax, first, 0, 1, 0);
    const bool special = args.op == kReduceLogSumExp && !(maximum - maximum == 0);
    const W sum = special ? maximum : Fold<W>(args, args.op, first, 0, 1, maximum);
    Store<W>(args.type, args.out, out, special ? maximum : A::Finish(args, sum, maximum));
  }
}

}  // namespace

BOUNDED_KERNEL(256, reduce_rows_float, ReduceArgs args) { ReduceRows<double>(args); }
BOUNDED_KERNEL(256, reduce_rows_int, ReduceArgs args) { ReduceRows<int64_t>(args); }
BOUNDED_KERNEL(256, reduce_columns_float, ReduceArgs args) { ReduceColumns<double>(args); }
BOUNDED_KERNEL(256, reduce_columns_int, ReduceArgs args) { ReduceColumns<int64_t>(args); }

}  // namespace msrt::cuda
