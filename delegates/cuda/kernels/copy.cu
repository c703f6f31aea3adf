// Elements that move unchanged: strided copies (transpose, slice, split, concat, expand, changes of
// layout), padding and tiling. Kernels differ only in the width of an element.
#include "delegates/cuda/kernels/index.h"

namespace msrt::cuda {
namespace {

template <typename T>
DEVICE void Copy(const CopyArgs& args) {
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    uint32_t rest = i;
    int64_t from = 0, to = 0;
    for (int d = args.space.rank - 1; d >= 0; --d) {
      const uint32_t x = d > 0 ? Split(&rest, args.space.dims[d]) : rest;
      from += x * args.in_strides[d];
      to += x * args.out_strides[d];
    }
    static_cast<T*>(args.out)[to] = static_cast<const T*>(args.in)[from];
  }
}

DEVICE int64_t Modulo(int64_t x, int64_t n) {
  const int64_t r = x % n;
  return r < 0 ? r + n : r;
}

enum PadModes : int32_t { kConstant = 0, kReflect = 1, kEdge = 2, kWrap = 3 };

// The source of output element `i` of axis d; -1: the constant. As PadAxis::Source.
DEVICE int64_t PadSource(const PadArgs& args, int d, int64_t i) {
  const int64_t x = i - args.before[d], kept = args.kept[d], first = args.first[d];
  if (x >= 0 && x < kept) return first + x;
  if (args.mode == kConstant) return -1;
  if (args.mode == kEdge) return first + (x < 0 ? 0 : kept - 1);
  if (args.mode == kWrap) return first + Modulo(x, kept);
  if (kept == 1) return first;
  const int64_t period = 2 * (kept - 1), phase = Modulo(x, period);
  return first + (phase < period - phase ? phase : period - phase);
}

template <typename T>
DEVICE void Pad(const PadArgs& args) {
  const T fill =
      args.value != nullptr ? *static_cast<const T*>(args.value) : static_cast<T>(args.bits);
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    uint32_t rest = i;
    int64_t from = 0;
    bool outside = false;
    for (int d = args.space.rank - 1; d >= 0; --d) {
      const uint32_t x = d > 0 ? Split(&rest, args.space.dims[d]) : rest;
      const int64_t source = PadSource(args, d, args.out_begin[d] + x);
      outside = outside || source < 0;
      from += (source - args.in_begin[d]) * args.in_strides[d];
    }
    static_cast<T*>(args.out)[i] = outside ? fill : static_cast<const T*>(args.in)[from];
  }
}

template <typename T>
DEVICE void Tile(const TileArgs& args) {
  for (uint32_t i = FirstElement(); i < args.space.elements; i += ElementStep()) {
    uint32_t rest = i;
    int64_t from = 0;
    for (int d = args.space.rank - 1; d >= 0; --d) {
      const uint32_t x = d > 0 ? Split(&rest, args.space.dims[d]) : rest;
      from += (args.begin[d] + x) % args.extent[d] * args.in_strides[d];
    }
    static_cast<T*>(args.out)[i] = static_cast<const T*>(args.in)[from];
  }
}

// Channels beyond the tensor's, which fill the last block, become zero.
template <typename T>
DEVICE void ChangeLayout(const LayoutArgs& args) {
  for (uint32_t i = FirstElement(); i < args.elements; i += ElementStep()) {
    uint32_t rest = i;
    const uint32_t in_block = Split(&rest, args.block), position = Split(&rest, args.positions);
    const uint32_t block = Split(&rest, args.blocks);
    const uint32_t channel = block * args.block.divisor + in_block;
    T value = 0;
    if (channel < args.channels) {
      value = static_cast<const T*>(
          args.in)[rest * args.batch_stride + channel / args.in_block * args.block_stride +
                   position * args.position_stride + channel % args.in_block * args.channel_stride];
    }
    static_cast<T*>(args.out)[i] = value;
  }
}

}  // namespace

#define MSRT_WIDTHS(function, kernel, Args)                                 \
  BOUNDED_KERNEL(256, kernel##_8, Args args) { function<uint8_t>(args); }   \
  BOUNDED_KERNEL(256, kernel##_16, Args args) { function<uint16_t>(args); } \
  BOUNDED_KERNEL(256, kernel##_32, Args args) { function<uint32_t>(args); } \
  BOUNDED_KERNEL(256, kernel##_64, Args args) { function<uint64_t>(args); }
MSRT_WIDTHS(Copy, copy, CopyArgs)
MSRT_WIDTHS(Pad, pad, PadArgs)
MSRT_WIDTHS(Tile, tile, TileArgs)
MSRT_WIDTHS(ChangeLayout, change_layout, LayoutArgs)

}  // namespace msrt::cuda
