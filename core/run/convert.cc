#include "core/run/convert.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

// The strides of a layout, in elements: of the batch, of a block of channels, of a position, and of
// a channel within its block. Plain and channels-last have blocks of one channel.
struct Strides {
  int64_t batch, block, position, within, channels_per_block;
};

int64_t PaddedChannels(Layout layout, int64_t channels) {
  return static_cast<int64_t>(
      AlignUp(static_cast<size_t>(channels), static_cast<size_t>(BlockOf(layout))));
}

Strides StridesOf(Layout layout, int64_t channels, int64_t space) {
  switch (layout) {
    case Layout::kPlain:
      return {channels * space, space, 1, 0, 1};
    case Layout::kChannelsLast:
      return {channels * space, 1, channels, 0, 1};
    case Layout::kBlocked8:
    case Layout::kBlocked16:
      break;
  }
  const int64_t block = BlockOf(layout);
  return {PaddedChannels(layout, channels) * space, block * space, block, 1, block};
}

// Moves a tile of a few channels by 64 positions, so that both sides are touched in whole cache
// lines.
template <typename T>
void ConvertTile(const T* from, const Strides& f, T* to, const Strides& t, int64_t c0, int64_t c1,
                 int64_t p0, int64_t p1) {
  for (int64_t c = c0; c < c1; ++c) {
    const T* source =
        from + c / f.channels_per_block * f.block + c % f.channels_per_block * f.within;
    T* target = to + c / t.channels_per_block * t.block + c % t.channels_per_block * t.within;
    for (int64_t p = p0; p < p1; ++p) target[p * t.position] = source[p * f.position];
  }
}

template <typename T>
Status Convert(const TensorView& from, const TensorView& to, ParallelFor& parallel) {
  const int64_t batch = from.dims[0], channels = from.dims[1],
                space = from.dims.product(2, from.dims.rank());
  const Strides f = StridesOf(from.layout, channels, space),
                t = StridesOf(to.layout, channels, space);
  constexpr int64_t kPositions = 64;
  const int64_t strips = CeilDiv(std::max<int64_t>(space, 1), kPositions);
  const int64_t padded = PaddedChannels(to.layout, channels);
  const int64_t tile = std::max<int64_t>({8, BlockOf(from.layout), BlockOf(to.layout)});
  return ParallelRanges(
      parallel, batch * strips, std::max<int64_t>(1, 4096 / std::max<int64_t>(channels, 1)),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t n = i / strips, p0 = i % strips * kPositions,
                        p1 = std::min(p0 + kPositions, space);
          const T* source = from.As<T>() + n * f.batch;
          T* target = to.As<T>() + n * t.batch;
          for (int64_t c = 0; c < channels; c += tile)
            ConvertTile(source, f, target, t, c, std::min(c + tile, channels), p0, p1);
          // Kernels rely on zeros in the padding of the last block.
          for (int64_t c = channels; c < padded; ++c) {
            T* const zeros = target + c / t.channels_per_block * t.block + c % t.channels_per_block;
            for (int64_t p = p0; p < p1; ++p) zeros[p * t.position] = T{};
          }
        }
      });
}

}  // namespace

Status ConvertLayout(const TensorView& from, const TensorView& to, ParallelFor& parallel) {
  if (from.layout == to.layout) {
    const auto bytes = static_cast<int64_t>(BytesIn(from.layout, from.dtype, from.dims));
    return ParallelRanges(parallel, bytes, int64_t{1} << 18, [&](int64_t begin, int64_t end) {
      std::memcpy(to.As<std::byte>() + begin, from.As<std::byte>() + begin,
                  static_cast<size_t>(end - begin));
    });
  }
  switch (BitsOf(from.dtype)) {
    case 8:
      return Convert<uint8_t>(from, to, parallel);
    case 16:
      return Convert<uint16_t>(from, to, parallel);
    case 32:
      return Convert<uint32_t>(from, to, parallel);
    case 64:
      return Convert<uint64_t>(from, to, parallel);
    default:
      return InternalError("no layout but plain for ", from.dtype);
  }
}

}  // namespace msrt
