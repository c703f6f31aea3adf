#include "core/image/files/tiff_reader.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/image/files/pixel_convert.h"
#include "core/image/files/tiff_pages.h"

namespace msrt {
namespace {

// Strips of more bytes are decoded row by row, in bands.
constexpr int64_t kLargeStripBytes = 8 << 20;
constexpr int64_t kTiffBandBytes = 1 << 20;
// Rows of separate planes alternate between handles, as going back restarts a strip.
constexpr size_t kMaxPlaneHandles = 16;

enum class Access { kTiles, kStrips, kRows };

// Expands elements of 1, 2 or 4 bits, of rows that begin at bytes.
void Unpack(const uint8_t* from, int bits, int64_t rows, int64_t row_elements, std::byte* to) {
  const int64_t row_bytes = CeilDiv(row_elements * bits, 8);
  const int per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < row_elements; ++i) {
      const int shift = 8 - bits * static_cast<int>(i % per_byte + 1);
      const int value = from[row * row_bytes + i / per_byte] >> shift & mask;
      to[row * row_elements + i] = static_cast<std::byte>(value);
    }
  }
}

class TiffBlockReader final : public BlockReader {
 public:
  TiffBlockReader(std::string path, const CodecOptions& options)
      : path_(std::move(path)), options_(options) {}

  const ImageInfo& info() const override { return info_; }
  const BlockLayout& layout() const override { return layout_; }

  Status Open() {
    MSRT_ASSIGN_OR_RETURN(handles_.emplace_back(), OpenHandle());
    info_.format = "TIFF";
    info_.channels = format_.channels;
    info_.height = format_.height;
    info_.width = format_.width;
    info_.dtype = format_.dtype;
    layout_.planar = format_.planar;
    MSRT_RETURN_IF_ERROR(ChooseAccess());
    MSRT_RETURN_IF_ERROR(CheckBlockBytes());
    if (format_.bits < 8) packed_.resize(static_cast<size_t>(StoredBytes(layout_.rows)));
    return OkStatus();
  }

  Status ReadBlock(const BlockIndex& index, std::span<std::byte> out) override {
    const int64_t rows = access_ == Access::kTiles
                             ? layout_.rows
                             : std::min(layout_.rows, info_.height - index.row * layout_.rows);
    std::byte* target = format_.bits < 8 ? packed_.data() : out.data();
    bool filled = false;
    MSRT_RETURN_IF_ERROR(access_ == Access::kRows ? ReadRows(index, rows, target)
                                                  : ReadStored(index, rows, target, &filled));
    if (filled) FillPixels(info_.no_data.value_or(0), info_.dtype, out.data(), Elements(rows));
    else if (format_.bits < 8)
      Unpack(reinterpret_cast<const uint8_t*>(packed_.data()), format_.bits, rows, RowElements(),
             out.data());
    return OkStatus();
  }

 private:
  int64_t RowElements() const { return layout_.cols * (layout_.planar ? 1 : info_.channels); }
  int64_t Elements(int64_t rows) const { return rows * RowElements(); }
  // Bytes of rows as libtiff decodes them.
  int64_t StoredBytes(int64_t rows) const {
    return rows * CeilDiv(RowElements() * format_.bits, 8);
  }

  // Opens the file at its page and level. The first handle also reads the description.
  Result<std::unique_ptr<TiffHandle>> OpenHandle() {
    const int64_t max_alloc = std::max(options_.max_block_bytes, int64_t{32} << 20) * 2;
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<TiffHandle> handle,
                          TiffHandle::OpenFile(path_, max_alloc));
    const bool is_first = handles_.empty();
    if (is_first) {
      if (options_.page > 0)
        (void)TIFFSetDirectory(handle->tiff(), static_cast<tdir_t>(options_.page));
      ReadTiffMetadata(handle->tiff(), &info_);
    }
    TiffFormat base;
    MSRT_ASSIGN_OR_RETURN(
        const TiffFormat format,
        SelectTiffLevel(handle.get(), options_.page, options_.level, &base, &info_.levels));
    if (is_first) {
      format_ = format;
      info_.geo = Rescaled(info_.geo, 0, 0,
                           static_cast<double>(base.height) / static_cast<double>(format.height),
                           static_cast<double>(base.width) / static_cast<double>(format.width));
    } else if (format != format_) {
      return IoError("the file was replaced while it was read");
    }
    if (format_.compression == COMPRESSION_JPEG && format_.photometric == PHOTOMETRIC_YCBCR)
      TIFFSetField(handle->tiff(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    return handle;
  }

  Status ChooseAccess() {
    TIFF* tiff = handles_[0]->tiff();
    if (format_.tiled) {
      uint32_t rows = 0, cols = 0;
      TIFFGetField(tiff, TIFFTAG_TILELENGTH, &rows);
      TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &cols);
      access_ = Access::kTiles;
      layout_.rows = rows;
      layout_.cols = cols;
      return OkStatus();
    }
    uint32_t strip_rows = UINT32_MAX;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &strip_rows);
    if (strip_rows == 0) return InvalidArgument("strips of 0 rows");
    layout_.cols = info_.width;
    layout_.rows = std::min<int64_t>(strip_rows, info_.height);
    access_ = Access::kStrips;
    int64_t row_bytes;
    if (!CheckedMul(RowElements(), ElementBytes(info_.dtype), &row_bytes))
      return LimitExceeded("a row of ", info_.width, " pixels is too long");
    if (layout_.rows > 1 && row_bytes > kLargeStripBytes / layout_.rows) {
      access_ = Access::kRows;
      layout_.rows = std::clamp<int64_t>(kTiffBandBytes / row_bytes, 1, layout_.rows);
      layout_.sequential = format_.compression != COMPRESSION_NONE;
    }
    return OkStatus();
  }

  // Requires that libtiff and this reader agree on the bytes of a block, before any is allocated.
  Status CheckBlockBytes() const {
    MSRT_RETURN_IF_ERROR(CheckImageInfo(info_));
    MSRT_RETURN_IF_ERROR(CheckBlockLayout(info_, layout_, options_.max_block_bytes));
    TIFF* tiff = handles_[0]->tiff();
    const tmsize_t bytes = access_ == Access::kTiles    ? TIFFTileSize(tiff)
                           : access_ == Access::kStrips ? TIFFStripSize(tiff)
                                                        : TIFFScanlineSize(tiff);
    if (bytes == StoredBytes(access_ == Access::kRows ? 1 : layout_.rows)) return OkStatus();
    return Unsupported("its tiles or strips of ", static_cast<int64_t>(bytes),
                       " bytes have subsampled or padded samples: convert it, for example with "
                       "gdal_translate");
  }

  Status Damaged(const BlockIndex& index, TiffHandle* handle) const {
    return InvalidArgument("the ", access_ == Access::kTiles ? "tile" : "strip", " at row ",
                           index.row * layout_.rows, ", column ", index.col * layout_.cols,
                           " is damaged or cut off: ", handle->TakeError("it cannot be decoded"));
  }

  // A tile or strip with 0 bytes was never written: GDAL's sparse files.
  Status ReadStored(const BlockIndex& index, int64_t rows, std::byte* out, bool* filled) {
    TiffHandle* handle = handles_[0].get();
    TIFF* tiff = handle->tiff();
    const auto row = static_cast<uint32_t>(index.row * layout_.rows);
    const auto col = static_cast<uint32_t>(index.col * layout_.cols);
    const auto plane = static_cast<uint16_t>(index.plane);
    const bool is_tile = access_ == Access::kTiles;
    const uint32_t number =
        is_tile ? TIFFComputeTile(tiff, col, row, 0, plane) : TIFFComputeStrip(tiff, row, plane);
    if (TIFFGetStrileOffset(tiff, number) == 0 && TIFFGetStrileByteCount(tiff, number) == 0) {
      *filled = true;
      return OkStatus();
    }
    const tmsize_t bytes = StoredBytes(rows);
    const tmsize_t read = is_tile ? TIFFReadEncodedTile(tiff, number, out, bytes)
                                  : TIFFReadEncodedStrip(tiff, number, out, bytes);
    return read == bytes ? OkStatus() : Damaged(index, handle);
  }

  Status ReadRows(const BlockIndex& index, int64_t rows, std::byte* out) {
    const size_t slot =
        layout_.sequential ? static_cast<size_t>(index.plane) % kMaxPlaneHandles : 0;
    while (handles_.size() <= slot) handles_.emplace_back();
    if (handles_[slot] == nullptr) {
      MSRT_ASSIGN_OR_RETURN(handles_[slot], OpenHandle());
    }
    TiffHandle* handle = handles_[slot].get();
    for (int64_t i = 0; i < rows; ++i) {
      const auto row = static_cast<uint32_t>(index.row * layout_.rows + i);
      if (TIFFReadScanline(handle->tiff(), out + i * StoredBytes(1), row,
                           static_cast<uint16_t>(index.plane)) != 1)
        return Damaged(index, handle);
    }
    return OkStatus();
  }

  const std::string path_;
  const CodecOptions options_;
  ImageInfo info_;
  BlockLayout layout_;
  TiffFormat format_;
  Access access_ = Access::kStrips;
  std::vector<std::unique_ptr<TiffHandle>> handles_;
  std::vector<std::byte> packed_;
};

}  // namespace

Result<std::unique_ptr<BlockReader>> OpenTiffBlocks(const std::string& path,
                                                    const CodecOptions& options) {
  auto reader = std::make_unique<TiffBlockReader>(path, options);
  MSRT_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<BlockReader>(std::move(reader));
}

}  // namespace msrt
