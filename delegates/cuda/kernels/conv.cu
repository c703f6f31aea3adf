// Convolutions without cuDNN, for exact results and where it is missing: an implicit product of
// weights (output channels x taps) and the input's windows (taps x positions). Every element is a
// chain of fused multiply-adds, in f32 or, for f64, in f64, that begins with its bias and adds for
// each kernel position, and there for each channel of the group; taps outside the input are left
// out, not added as zeros, so that the bits do not depend on where the input was cut.
#include "delegates/cuda/kernels/epilogue.h"
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

constexpr int kTile = 64, kSlice = 16, kPerThread = 4;

struct Position {
  int32_t start[3];  // of the window, in the input
  bool inside;
};

DEVICE Position PositionOf(const ConvArgs& args, uint32_t position) {
  Position p;
  p.inside = position < args.positions;
  uint32_t rest = p.inside ? position : 0;
  const uint32_t x = Split(&rest, args.out_columns), y = Split(&rest, args.out_rows);
  const uint32_t at[3] = {rest, y, x};
  for (int a = 0; a < 3; ++a)
    p.start[a] = static_cast<int32_t>(at[a]) * args.axis[a].stride - args.axis[a].pad;
  return p;
}

// Offset in a plane of the input of a tap; -1 where it is outside.
DEVICE int64_t TapOffset(const ConvArgs& args, const Position& p, uint32_t tap) {
  uint32_t rest = tap;
  const uint32_t x = Split(&rest, args.kernel_columns), y = Split(&rest, args.kernel_rows);
  const uint32_t at[3] = {rest, y, x};
  int64_t offset = 0;
  bool inside = p.inside;
  for (int a = 0; a < 3; ++a) {
    const int32_t i = p.start[a] + static_cast<int32_t>(at[a]) * args.axis[a].dilation;
    inside = inside && i >= 0 && i < args.axis[a].in;
    offset = offset * args.axis[a].in + i;
  }
  return inside ? offset : -1;
}

template <typename W>
DEVICE void Conv(const ConvArgs& args) {
  __shared__ W weights[kSlice][kTile + 1], inputs[kSlice][kTile + 1];
  __shared__ unsigned char present[kSlice][kTile];
  const int thread_row = threadIdx.x / 16, thread_column = threadIdx.x % 16;
  const uint32_t image = blockIdx.z / args.groups, group = blockIdx.z % args.groups;
  const uint32_t channel0 = blockIdx.y * kTile, position0 = blockIdx.x * kTile;
  const uint32_t depth = args.taps * args.in_channels;
  const int64_t in_plane = int64_t{args.axis[0].in} * args.axis[1].in * args.axis[2].in;
  const int64_t x_first = (int64_t{image} * args.groups + group) * args.in_channels * in_plane;
  W sum[kPerThread][kPerThread];
  UNROLL for (int i = 0; i < kPerThread; ++i) {
    const uint32_t channel = channel0 + thread_row + 16 * i;
    const W bias = args.end.bias != nullptr && channel < args.out_channels
                       ? LoadReal<W>(args.type, args.end.bias, group * args.out_channels + channel)
                       : W{0};
    UNROLL for (int j = 0; j < kPerThread; ++j) sum[i][j] = bias;
  }
  for (uint32_t k0 = 0; k0 < depth; k0 += kSlice) {
    bool all = true;
    for (int e = threadIdx.x; e < kSlice * kTile; e += 256) {
      const int k = e / kTile, lane = e % kTile;
      uint32_t tap = k0 + k;
      const bool within = tap < depth;
      const uint32_t c = Split(&tap, args.channels);
      const uint32_t channel = channel0 + lane;
      weights[k][lane] =
          within && channel < args.out_channels
              ? LoadReal<W>(args.type, args.w,
                            ((int64_t{group} * args.out_channels + channel) * args.in_channels +
                             c) * args.taps +
                                tap)
              : W{0};
      const int64_t offset =
          within ? TapOffset(args, PositionOf(args, position0 + lane), tap) : int64_t{-1};
      inputs[k][lane] =
          offset >= 0 ? LoadReal<W>(args.type, args.x, x_first + c * in_plane + offset) : W{0};
      present[k][lane] = offset >= 0;
      all = all && offset >= 0;
    }
    const bool complete = __syncthreads_and(all);
    const uint32_t slice = depth - k0 < kSlice ? depth - k0 : kSlice;
    for (uint32_t k = 0; k < slice; ++k) {
      W w[kPerThread], x[kPerThread];
      UNROLL for (int i = 0; i < kPerThread; ++i) {
        w[i] = weights[k][thread_row + 16 * i];
        x[i] = inputs[k][thread_column + 16 * i];
      }
      if (complete) {
        UNROLL for (int i = 0; i < kPerThread; ++i) {
          UNROLL for (int j = 0; j < kPerThread; ++j) sum[i][j] =
              FusedMultiplyAdd(x[j], w[i], sum[i][j]);
        }
      } else {
        UNROLL for (int j = 0; j < kPerThread; ++j) {
          if (present[k][thread_column + 16 * j] == 0) continue;
          UNROLL for (int i = 0; i < kPerThread; ++i) sum[i][j] =
              FusedMultiplyAdd(x[j], w[i], sum[i][j]);
        }
      }
    }
    __syncthreads();
  }
  UNROLL for (int i = 0; i < kPerThread; ++i) {
    UNROLL for (int j = 0; j < kPerThread; ++j) {
      const uint32_t channel = channel0 + thread_row + 16 * i,
                     position = position0 + thread_column + 16 * j;
      if (channel < args.out_channels && position < args.positions) {
        const int64_t at = ((int64_t{image} * args.groups + group) * args.out_channels + channel) *
                               args.positions +
                           position;
        StoreReal<W>(args.type, args.y, at,
                     Finish<W>(args.end, args.type, sum[i][j], at, false, 0));
      }
    }
  }
}

}  // namespace

BOUNDED_KERNEL(256, conv_chain_f32, ConvArgs args) { Conv<float>(args); }
BOUNDED_KERNEL(256, conv_chain_f64, ConvArgs args) { Conv<double>(args); }

}  // namespace msrt::cuda
