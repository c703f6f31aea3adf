// Softmax and LogSoftmax along any axis. Rows: a block for each line, whose elements lie side by
// side. Columns: a thread for each line, neighbours beside each other. f64 is computed in double,
// the others in float with sums in double.
#include "delegates/cuda/kernels/block_reduce.h"
#include "delegates/cuda/kernels/index.h"
#include "delegates/cuda/kernels/pointwise.h"

namespace msrt::cuda {
namespace {

template <typename W>
DEVICE W MaxOf(W a, W b) {
  return b > a || a != a ? b : a;  // a NaN does not count here: it comes in through the sum
}

template <typename W>
DEVICE W Element(const SoftmaxArgs& args, int64_t first, uint32_t i) {
  return LoadReal<W>(args.type, args.in, first + int64_t{i} * args.inner.divisor);
}

DEVICE int64_t FirstOf(const SoftmaxArgs& args, uint32_t line) {
  uint32_t outer = line;
  const uint32_t inner = Split(&outer, args.inner);
  return int64_t{outer} * args.extent * args.inner.divisor + inner;
}

template <typename W>
DEVICE void Write(const SoftmaxArgs& args, int64_t first, uint32_t begin, uint32_t step, W maximum,
                  double sum) {
  const W log_sum = args.log != 0 ? static_cast<W>(log(sum)) : W{0};
  const W scale = args.log != 0 ? W{1} : static_cast<W>(sum);
  for (uint32_t i = begin; i < args.extent; i += step) {
    const W x = Element<W>(args, first, i) - maximum;
    StoreReal<W>(args.type, args.out, first + int64_t{i} * args.inner.divisor,
                 args.log != 0 ? x - log_sum : ExpOf(x) / scale);
  }
}

template <typename W>
DEVICE void SoftmaxRows(const SoftmaxArgs& args) {
  for (uint32_t line = blockIdx.x; line < args.lines; line += gridDim.x) {
    const int64_t first = FirstOf(args, line);
    W maximum = -static_cast<W>(INFINITY);
    for (uint32_t i = threadIdx.x; i < args.extent; i += blockDim.x)
      maximum = MaxOf(maximum, Element<W>(args, first, i));
    maximum = BlockReduce(maximum, [](W a, W b) { return MaxOf(a, b); });
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < args.extent; i += blockDim.x)
      sum += static_cast<double>(ExpOf(Element<W>(args, first, i) - maximum));
    sum = BlockReduce(sum, [](double a, double b) { return a + b; });
    Write<W>(args, first, threadIdx.x, blockDim.x, maximum, sum);
  }
}

template <typename W>
DEVICE void SoftmaxColumns(const SoftmaxArgs& args) {
  for (uint32_t line = FirstElement(); line < args.lines; line += ElementStep()) {
    const int64_t first = FirstOf(args, line);
    W maximum = -static_cast<W>(INFINITY);
    for (uint32_t i = 0; i < args.extent; ++i) maximum = MaxOf(maximum, Element<W>(args, first, i));
    double sum = 0;
    for (uint32_t i = 0; i < args.extent; ++i)
      sum += static_cast<double>(ExpOf(Element<W>(args, first, i) - maximum));
    Write<W>(args, first, 0, 1, maximum, sum);
  }
}

}  // namespace

BOUNDED_KERNEL(256, softmax_rows_f32, SoftmaxArgs args) { SoftmaxRows<float>(args); }
BOUNDED_KERNEL(256, softmax_rows_f64, SoftmaxArgs args) { SoftmaxRows<double>(args); }
BOUNDED_KERNEL(256, softmax_columns_f32, SoftmaxArgs args) { SoftmaxColumns<float>(args); }
BOUNDED_KERNEL(256, softmax_columns_f64, SoftmaxArgs args) { SoftmaxColumns<double>(args); }

}  // namespace msrt::cuda
