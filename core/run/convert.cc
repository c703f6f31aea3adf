#include "core/run/convert.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

// The strides of a tensor, in elements: of the batch, of a block of channels, of a position along
// the last dim, and of a channel within its block. Plain and channels-last have blocks of one
// channel.
struct Strides {
  int64_t batch, block, position, within, channels_per_block;
  Dims rows;  // of the spatial dims but the last
};

// One row for each index of the spatial dims but the last. If both tensors are dense in space, all
// positions are one row.
struct Rows {
  Dims dims;
  int64_t count = 1, length = 1;
};

Dims StridesIn(const TensorView& t) {
  return t.strides != nullptr ? Dims({t.strides, t.dims.size()}) : DenseStrides(t.layout, t.dims);
}

Strides StridesOf(const TensorView& t, const Rows& rows) {
  const Dims strides = StridesIn(t);
  const int64_t block = BlockOf(t.layout);
  Strides s{strides[0], strides[1], strides[t.dims.rank() - 1], block > 1 ? 1 : 0, block, {}};
  for (int d = 0; d < rows.dims.rank(); ++d) s.rows.push_back(strides[2 + d]);
  return s;
}

Rows RowsOf(const TensorView& from, const TensorView& to) {
  Rows rows;
  const int rank = from.dims.rank();
  if (from.strides == nullptr && to.strides == nullptr) {
    rows.length = from.dims.product(2, rank);
    return rows;
  }
  for (int d = 2; d < rank - 1; ++d) rows.dims.push_back(from.dims[d]);
  rows.count = rows.dims.elements();
  rows.length = from.dims[rank - 1];
  return rows;
}

int64_t RowOffset(const Strides& s, const Rows& rows, int64_t row) {
  int64_t offset = 0;
  for (int d = rows.dims.rank() - 1; d >= 0; --d) {
    offset += row % rows.dims[d] * s.rows[d];
    row /= rows.dims[d];
  }
  return offset;
}

int64_t PaddedChannels(Layout layout, int64_t channels) {
  return static_cast<int64_t>(
      AlignUp(static_cast<size_t>(channels), static_cast<size_t>(BlockOf(layout))));
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
  const int64_t batch = from.dims[0], channels = from.dims[1];
  const Rows rows = RowsOf(from, to);
  const Strides f = StridesOf(from, rows), t = StridesOf(to, rows);
  constexpr int64_t kPositions = 64;
  const int64_t strips = CeilDiv(std::max<int64_t>(rows.length, 1), kPositions);
  const int64_t padded = PaddedChannels(to.layout, channels);
  const int64_t tile = std::max<int64_t>({8, BlockOf(from.layout), BlockOf(to.layout)});
  return ParallelRanges(
      parallel, batch * rows.count * strips,
      std::max<int64_t>(1, 4096 / std::max<int64_t>(channels, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t n = i / strips / rows.count, row = i / strips % rows.count,
                        p0 = i % strips * kPositions, p1 = std::min(p0 + kPositions, rows.length);
          const T* source = from.As<T>() + n * f.batch + RowOffset(f, rows, row);
          T* target = to.As<T>() + n * t.batch + RowOffset(t, rows, row);
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

// The dims in the order of memory, outermost first, with the strides of both sides.
struct CopyLoops {
  std::vector<int64_t> dims, from, to;
};

// Loops over runs that are contiguous on both sides; the last dim is the length of a run.
CopyLoops LoopsFor(const TensorView& from, const TensorView& to) {
  const Dims f = StridesIn(from), t = StridesIn(to);
  CopyLoops loops;
  const auto add = [&](int64_t extent, int64_t from_stride, int64_t to_stride) {
    // A dim that continues the one before it is merged with it.
    if (!loops.dims.empty() && loops.from.back() == extent * from_stride &&
        loops.to.back() == extent * to_stride) {
      loops.dims.back() *= extent;
      loops.from.back() = from_stride, loops.to.back() = to_stride;
    } else {
      loops.dims.push_back(extent);
      loops.from.push_back(from_stride), loops.to.push_back(to_stride);
    }
  };
  const auto add_dim = [&](int d) { add(from.dims[d], f[d], t[d]); };
  const int rank = from.dims.rank();
  if (from.layout == Layout::kPlain) {
    for (int d = 0; d < rank; ++d) add_dim(d);
    return loops;
  }
  add_dim(0);
  const int64_t block = BlockOf(from.layout);
  if (block > 1) add(CeilDiv(from.dims[1], block), f[1], t[1]);
  for (int d = 2; d < rank; ++d) add_dim(d);
  if (block > 1) add(block, 1, 1);
  else add_dim(1);
  return loops;
}

// Between equal layouts.
Status CopyStrided(const TensorView& from, const TensorView& to, ParallelFor& parallel) {
  CopyLoops loops = LoopsFor(from, to);
  if (loops.from.back() != 1 || loops.to.back() != 1)  // a run of single elements
    loops.dims.push_back(1), loops.from.push_back(1), loops.to.push_back(1);
  const size_t width = BytesOf(from.dtype, 1);
  const auto run = static_cast<size_t>(loops.dims.back()) * width;
  int64_t runs = 1;
  for (size_t d = 0; d + 1 < loops.dims.size(); ++d) runs *= loops.dims[d];
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 16) / static_cast<int64_t>(run + 1));
  return ParallelRanges(parallel, runs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t source = 0, target = 0, rest = i;
      for (size_t d = loops.dims.size() - 1; d-- > 0;) {
        const int64_t at = rest % loops.dims[d];
        rest /= loops.dims[d];
        source += at * loops.from[d];
        target += at * loops.to[d];
      }
      std::memcpy(to.As<std::byte>() + target * static_cast<int64_t>(width),
                  from.As<std::byte>() + source * static_cast<int64_t>(width), run);
    }
  });
}

}  // namespace

Status ConvertLayout(const TensorView& from, const TensorView& to, ParallelFor& parallel) {
  if (from.dims.elements() == 0) return OkStatus();
  const bool strided = from.strides != nullptr || to.strides != nullptr;
  if (from.layout == to.layout && strided) return CopyStrided(from, to, parallel);
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
