// Normalizations: by given moments of channels (batch norm), and by the moments of rows, which a
// block computes (layer, group, instance and RMS norm). Moments are computed in double.
#include "delegates/cuda/kernels/block_reduce.h"
#include "delegates/cuda/kernels/index.h"
#include "delegates/cuda/kernels/pointwise.h"

namespace msrt::cuda {
namespace {

template <typename W>
DEVICE void BatchNorm(const BatchNormArgs& args) {
  for (uint32_t i = FirstElement(); i < args.elements; i += ElementStep()) {
    uint32_t channel = Quotient(i, args.plane);
    channel = Split(&channel, args.channels);
    const W variance = LoadReal<W>(args.statistic_type, args.variance, channel),
            deviation = SqrtOf(variance + static_cast<W>(args.epsilon));
    const W mean = LoadReal<W>(args.statistic_type, args.mean, channel);
    W y = (LoadReal<W>(args.type, args.in, i) - mean) / deviation *
              LoadReal<W>(args.scale_type, args.scale, channel) +
          LoadReal<W>(args.scale_type, args.bias, channel);
    if (args.activation >= 0)
      y = FloatFunction<W>(args.activation, y, static_cast<W>(args.a), static_cast<W>(args.b));
    StoreReal<W>(args.type, args.out, i, y);
  }
}

DEVICE double AddDoubles(double a, double b) { return a + b; }

template <typename W>
DEVICE void RowNorm(const RowNormArgs& args) {
  for (uint32_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const int64_t first = int64_t{row} * args.length;
    double mean = 0, squares = 0;
    if (args.rms == 0) {
      for (uint32_t i = threadIdx.x; i < args.length; i += blockDim.x)
        mean += LoadReal<double>(args.type, args.in, first + i);
      mean = BlockReduce(mean, AddDoubles) / static_cast<double>(args.length);
    }
    for (uint32_t i = threadIdx.x; i < args.length; i += blockDim.x) {
      const double x = LoadReal<double>(args.type, args.in, first + i) - mean;
      squares += x * x;
    }
    squares = BlockReduce(squares, AddDoubles);
    const double inverse = 1 / sqrt(squares / static_cast<double>(args.length) + args.epsilon);
    uint32_t rest = row;
    const uint32_t parameter_row = Split(&rest, args.row_modulus) * args.row_step;
    for (uint32_t i = threadIdx.x; i < args.length; i += blockDim.x) {
      const int64_t p =
          parameter_row + int64_t{Quotient(i, args.column_divisor)} * args.column_step;
      // The difference is exact enough in double only: x and the mean may nearly be equal.
      W y = static_cast<W>((LoadReal<double>(args.type, args.in, first + i) - mean) * inverse);
      y = y * LoadReal<W>(args.scale_type, args.scale, p);
      if (args.bias != nullptr) y = y + LoadReal<W>(args.scale_type, args.bias, p);
      StoreReal<W>(args.out_type, args.out, first + i, y);
    }
    if (threadIdx.x != 0) continue;
    if (args.mean_out != nullptr) StoreReal<double>(args.statistic_type, args.mean_out, row, mean);
    if (args.deviation_out != nullptr)
      StoreReal<double>(args.statistic_type, args.deviation_out, row, inverse);
  }
}

}  // namespace

BOUNDED_KERNEL(256, batch_norm_f32, BatchNormArgs args) { BatchNorm<float>(args); }
BOUNDED_KERNEL(256, batch_norm_f64, BatchNormArgs args) { BatchNorm<double>(args); }
BOUNDED_KERNEL(256, row_norm_f32, RowNormArgs args) { RowNorm<float>(args); }
BOUNDED_KERNEL(256, row_norm_f64, RowNormArgs args) { RowNorm<double>(args); }

}  // namespace msrt::cuda
