#include "core/image/jobs/result_memory.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/image/files/npy_sink.h"
#include "core/image/files/tiff_store.h"
#include "core/image/jobs/image_content.h"

namespace msrt {
namespace {

// Pixels of a block on its way to the file: interleaved, compressed, and halved for the overview.
constexpr int64_t kCopiesOfABlock = 4;

// The number of blocks of a level that are incomplete or on their way to the file. `shrink`: the
// pixels of the result in a row of the level's pixels.
int64_t OpenBlocks(const ResultPieces& pieces, int64_t height, int64_t width, int64_t block_rows,
                   int64_t block_cols, int64_t shrink) {
  const auto blocks = [&](int64_t pixels, int64_t block) {
    return CeilDiv(CeilDiv(pixels, shrink), block) + 1;  // parts and tiles begin anywhere
  };
  const int64_t down = CeilDiv(height, block_rows), across = CeilDiv(width, block_cols);
  // Each part has a row of blocks that is not complete. Tiles have one in all: of the row at the
  // top what is right of the last tile, of the row at the bottom what is left of it.
  int64_t open = blocks(CeilDiv(width * shrink, pieces.parts_across), block_cols) + 1;
  // Blocks at the right of the last tile, and those that it completes.
  if (pieces.columns > 0)
    open += blocks(pieces.rows, block_rows) + blocks(pieces.columns, block_cols);
  open *= pieces.parts_down * pieces.parts_across;
  // Blocks in which parts meet are complete when both are.
  open += (pieces.parts_down - 1) * across + (pieces.parts_across - 1) * down;
  return std::min(open, down * across);
}

int64_t TiffBytes(const CreateOptions& create, const ImageInfo& info, const ResultPieces& pieces) {
  const int64_t pixel_bytes = info.channels * ElementBytes(info.dtype) + 1;
  const int64_t strip = kStripBytes / (info.width * info.channels * ElementBytes(info.dtype));
  const int64_t block = create.tile > 0 ? create.tile : std::clamp<int64_t>(strip, 1, info.height);
  const int64_t block_cols = create.tile > 0 ? create.tile : info.width;
  int64_t blocks = kCopiesOfABlock * pieces.parts_down * pieces.parts_across;
  int64_t height = info.height, width = info.width;
  for (int64_t shrink = 1;; shrink *= 2) {
    blocks += OpenBlocks(pieces, height, width, block, block_cols, shrink);
    // Results with a palette have overviews.
    if (info.palette.empty() || create.tile == 0 || std::max(height, width) <= create.tile) break;
    height = CeilDiv(height, 2), width = CeilDiv(width, 2);
  }
  return blocks * block * block_cols * pixel_bytes;
}

// A bit for each pixel.
int64_t NpyBytes(const ImageInfo& info, const ResultPieces& pieces) {
  constexpr int64_t kBlockBytes = kNpyBlockRows * kNpyBlockCols / 8 + 64;
  return kBlockBytes * OpenBlocks(pieces, info.height, info.width, kNpyBlockRows, kNpyBlockCols, 1);
}

}  // namespace

int64_t ConvertedRows(const ImageInfo& info, int64_t columns) {
  const int64_t row_bytes = columns * info.channels * ElementBytes(info.dtype);
  return std::max<int64_t>(1, static_cast<int64_t>(kResultBandBytes) / row_bytes);
}

size_t ResultMessageBytes(const Type& output, int64_t columns) {
  const int64_t channels = output.rank() == 4 ? output.dims[1] : 1;
  return std::max(kResultBandBytes, BytesOf(output.dtype, channels * columns));
}

int64_t OpenBlockBytes(const JobOptions& options, const JobOutput& output, const ImageInfo& info,
                       const ResultPieces& pieces) {
  if (output.write != nullptr) return 0;
  const bool is_npy = output.path.ends_with(".npy");
  return is_npy ? NpyBytes(info, pieces) : TiffBytes(options.create, info, pieces);
}

int64_t ResultBytes(const JobOptions& options, const JobOutput& output, const ImageInfo& info,
                    const ResultPieces& pieces, bool converts) {
  const int64_t open = OpenBlockBytes(options, output, info, pieces);
  if (!converts) return open;
  const int64_t part = CeilDiv(info.width, pieces.parts_across);
  const int64_t columns = pieces.columns > 0 ? std::min(pieces.columns, part) : part;
  // Pixels are converted in bands within a row of blocks.
  const int64_t rows = std::min(
      {ConvertedRows(info, columns), info.height, std::max<int64_t>(options.create.tile, 1)});
  return open + pieces.parts_down * pieces.parts_across * rows * columns * info.channels *
                    ElementBytes(info.dtype);
}

ResultPieces WriterMemory::Pieces(ImageExecutor executor, int64_t rows, int64_t columns) const {
  const RankPart part = ranks_.part(executor);
  ResultPieces pieces{executor, part.rows, part.columns, rows, 0};
  if (executor != ImageExecutor::kTiles) return pieces;
  pieces.columns = columns;
  // The other ranks have more memory, so their tiles may be larger.
  if (!ranks_.alone() && options_.plan.tile_rows == 0) pieces.rows = pieces.columns = kMaxTile;
  return pieces;
}

size_t WriterMemory::Bytes(ImageExecutor executor, int64_t rows, int64_t columns) const {
  const ResultPieces pieces = Pieces(executor, rows, columns);
  size_t bytes = 0, message = 0;
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Type& type = outputs_[o];
    const JobOutput& output = options_.outputs[o];
    const int64_t width = type.dims[type.rank() - 1];
    message = std::max(message, ResultMessageBytes(type, CeilDiv(width, pieces.parts_across)));
    if (!ranks_.writes()) continue;
    const ImageInfo info = *ResultInfo(type, output.classes);
    const bool converts = content_ || type.dtype != info.dtype;
    bytes += static_cast<size_t>(ResultBytes(options_, output, info, pieces, converts));
    if (content_) bytes += static_cast<size_t>(ImageContent::BytesOf(width, ContentRows(pieces)));
  }
  if (!ranks_.writes()) return message;
  const int64_t others = options_.split_rows * options_.split_columns - 1;
  return bytes + static_cast<size_t>(others) * message;
}

int64_t WriterMemory::ContentRows(const ResultPieces& pieces) {
  // A piece begins and ends within bands of rows.
  return (pieces.rows + 2 * ImageContent::kBandRows) * pieces.parts_down;
}

}  // namespace msrt
