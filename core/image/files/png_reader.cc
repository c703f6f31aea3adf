#include "core/image/files/png_reader.h"

#include <png.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "core/base/utf8.h"
#include "core/image/files/image_file.h"

namespace msrt {
namespace {

constexpr int64_t kPngBandBytes = 256 << 10;
constexpr png_alloc_size_t kMaxChunkBytes = 8 << 20;

// libpng reports an error by longjmp to the frame that called setjmp. Such frames here have no
// object with a destructor, and everything that must be freed is a member.
class PngBlockReader final : public BlockReader {
 public:
  PngBlockReader(ImageFile file, const CodecOptions& options)
      : file_(std::move(file)), options_(options) {}
  ~PngBlockReader() override { Close(); }

  const ImageInfo& info() const override { return info_; }
  const BlockLayout& layout() const override { return layout_; }

  Status Open() {
    MSRT_RETURN_IF_ERROR(Start());
    MSRT_RETURN_IF_ERROR(CheckImageInfo(info_));
    const int64_t row_bytes = info_.channels * info_.width * ElementBytes(info_.dtype);
    layout_ = {std::clamp<int64_t>(kPngBandBytes / row_bytes, 1, info_.height), info_.width, false,
               true};
    // The passes of an interlaced image touch all rows, so it is one block.
    if (passes_ > 1) layout_.rows = info_.height;
    return CheckBlockLayout(info_, layout_, options_.max_block_bytes);
  }

  Status ReadBlock(const BlockIndex& index, std::span<std::byte> out) override {
    const int64_t row = index.row * layout_.rows;
    const int64_t rows = std::min(layout_.rows, info_.height - row);
    if (png_ == nullptr || next_row_ > row || passes_ > 1) {
      const ImageInfo before = info_;
      MSRT_RETURN_IF_ERROR(Start());
      if (info_.channels != before.channels || info_.height != before.height ||
          info_.width != before.width || info_.dtype != before.dtype)
        return IoError("the file was replaced while it was read");
    }
    if (ReadRows(row, rows, out.data())) return OkStatus();
    Close();
    return InvalidArgument("a PNG that is damaged or cut off between rows ", next_row_, " and ",
                           row + rows, ": ", Printable(error_));
  }

 private:
  static void OnError(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngBlockReader*>(png_get_error_ptr(png));
    std::snprintf(self->error_, sizeof(error_), "%s", message);
    std::longjmp(self->jump_, 1);
  }
  static void OnWarning(png_structp, png_const_charp) {}
  static void OnRead(png_structp png, png_bytep out, size_t bytes) {
    auto* self = static_cast<PngBlockReader*>(png_get_io_ptr(png));
    if (!self->Fetch(reinterpret_cast<std::byte*>(out), bytes))
      png_error(png, "the file ends or cannot be read");
  }

  // Reads through a buffer: libpng asks for small pieces.
  bool Fetch(std::byte* out, size_t bytes) {
    while (bytes > 0) {
      if (buffer_used_ == buffer_bytes_) {
        const int64_t left = file_bytes_ - offset_;
        if (left <= 0) return false;
        buffer_bytes_ = static_cast<size_t>(std::min<int64_t>(left, sizeof(buffer_)));
        buffer_used_ = 0;
        if (!file_.Read(offset_, {buffer_, buffer_bytes_}).ok()) return false;
        offset_ += static_cast<int64_t>(buffer_bytes_);
      }
      const size_t count = std::min(bytes, buffer_bytes_ - buffer_used_);
      std::memcpy(out, buffer_ + buffer_used_, count);
      buffer_used_ += count;
      out += count;
      bytes -= count;
    }
    return true;
  }

  void Close() {
    png_destroy_read_struct(&png_, png_info_ == nullptr ? nullptr : &png_info_, nullptr);
    png_ = nullptr;
    png_info_ = nullptr;
  }

  // Begins at the first row and reads the header.
  Status Start() {
    Close();
    MSRT_ASSIGN_OR_RETURN(file_bytes_, file_.Bytes());
    offset_ = 0;
    buffer_bytes_ = buffer_used_ = 0;
    next_row_ = 0;
    if (ReadHeader()) {
      info_.format = "PNG";
      SetPalette();
      return OkStatus();
    }
    Close();
    return InvalidArgument("not a PNG, or a damaged one: ", Printable(error_));
  }

  bool ReadHeader() {
    std::snprintf(error_, sizeof(error_), "out of memory");
    return setjmp(jump_) == 0 && DecodeHeader();
  }

  bool DecodeHeader() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, OnError, OnWarning);
    if (png_ == nullptr) return false;
    png_info_ = png_create_info_struct(png_);
    if (png_info_ == nullptr) return false;
    png_set_read_fn(png_, this, OnRead);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(png_, kMaxChunkBytes);
    png_set_chunk_cache_max(png_, 64);
    png_read_info(png_, png_info_);
    const int bits = png_get_bit_depth(png_, png_info_);
    if (bits < 8) png_set_packing(png_);  // one byte per pixel, the value unchanged
    if (bits == 16 && std::endian::native == std::endian::little) png_set_swap(png_);
    passes_ = png_set_interlace_handling(png_);
    png_read_update_info(png_, png_info_);
    info_.height = png_get_image_height(png_, png_info_);
    info_.width = png_get_image_width(png_, png_info_);
    info_.channels = png_get_channels(png_, png_info_);
    info_.dtype = bits == 16 ? DType::kU16 : DType::kU8;
    return true;
  }

  void SetPalette() {
    info_.palette.clear();
    png_colorp colors = nullptr;
    int count = 0;
    if (png_get_color_type(png_, png_info_) != PNG_COLOR_TYPE_PALETTE ||
        png_get_PLTE(png_, png_info_, &colors, &count) == 0)
      return;
    for (int i = 0; i < count; ++i)
      info_.palette.push_back({static_cast<uint16_t>(colors[i].red * 257),
                               static_cast<uint16_t>(colors[i].green * 257),
                               static_cast<uint16_t>(colors[i].blue * 257)});
  }

  // The frame of setjmp has nothing that a jump could leave undefined.
  bool ReadRows(int64_t row, int64_t rows, std::byte* out) {
    if (setjmp(jump_) != 0) return false;
    DecodeRows(row, rows, out);
    return true;
  }

  // Skips to `row` and decodes `rows` rows.
  void DecodeRows(int64_t row, int64_t rows, std::byte* out) {
    const int64_t row_bytes = info_.channels * info_.width * ElementBytes(info_.dtype);
    if (static_cast<int64_t>(png_get_rowbytes(png_, png_info_)) != row_bytes)
      png_error(png_, "rows of an unexpected size");
    for (; next_row_ < row; ++next_row_)
      png_read_row(png_, reinterpret_cast<png_bytep>(out), nullptr);
    for (int pass = 0; pass < passes_; ++pass) {
      for (int64_t i = 0; i < rows; ++i)
        png_read_row(png_, reinterpret_cast<png_bytep>(out + i * row_bytes), nullptr);
    }
    next_row_ = row + rows;
  }

  const ImageFile file_;
  const CodecOptions options_;
  ImageInfo info_;
  BlockLayout layout_;
  png_structp png_ = nullptr;
  png_infop png_info_ = nullptr;
  int passes_ = 1;
  int64_t next_row_ = 0, file_bytes_ = 0, offset_ = 0;
  size_t buffer_bytes_ = 0, buffer_used_ = 0;
  std::byte buffer_[16 * 1024];
  char error_[128] = "";
  std::jmp_buf jump_;
};

}  // namespace

Result<std::unique_ptr<BlockReader>> OpenPngBlocks(const std::string& path,
                                                   const CodecOptions& options) {
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForReading(path));
  auto reader = std::make_unique<PngBlockReader>(std::move(file), options);
  MSRT_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<BlockReader>(std::move(reader));
}

}  // namespace msrt
