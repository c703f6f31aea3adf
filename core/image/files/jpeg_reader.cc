#include "core/image/files/jpeg_reader.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "core/base/utf8.h"
#include "core/image/files/image_file.h"

namespace msrt {
namespace {

constexpr int64_t kBandRows = 16;
// A progressive file may have any number of scans over all coefficients; real ones have about ten.
constexpr int kMaxScans = 100;
// Warnings after which pixels are made up. Others concern metadata.
constexpr int kDamage[] = {JWRN_JPEG_EOF,         JWRN_HIT_MARKER,     JWRN_HUFF_BAD_CODE,
                           JWRN_MUST_RESYNC,      JWRN_NOT_SEQUENTIAL, JWRN_ARITH_BAD_CODE,
                           JWRN_BOGUS_PROGRESSION};

// libjpeg reports an error by calling error_exit, which must not return: it jumps to the frame that
// called setjmp. Such frames here have no object with a destructor.
class JpegBlockReader final : public BlockReader {
 public:
  JpegBlockReader(ImageFile file, const CodecOptions& options)
      : file_(std::move(file)), options_(options) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = OnError;
    errors_.emit_message = OnMessage;
    jpeg_.client_data = this;
    progress_.progress_monitor = OnProgress;
    source_.init_source = [](j_decompress_ptr) {};
    source_.fill_input_buffer = OnFill;
    source_.skip_input_data = OnSkip;
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.term_source = [](j_decompress_ptr) {};
  }
  ~JpegBlockReader() override { Close(); }

  const ImageInfo& info() const override { return info_; }
  const BlockLayout& layout() const override { return layout_; }

  Status Open() {
    MSRT_RETURN_IF_ERROR(Start());
    MSRT_RETURN_IF_ERROR(CheckImageInfo(info_));
    layout_ = {std::min(kBandRows, info_.height), info_.width, false, true};
    return CheckBlockLayout(info_, layout_, options_.max_block_bytes);
  }

  Status ReadBlock(const BlockIndex& index, std::span<std::byte> out) override {
    const int64_t row = index.row * layout_.rows;
    const int64_t rows = std::min(layout_.rows, info_.height - row);
    if (!open_ || next_row_ > row) {
      const ImageInfo before = info_;
      MSRT_RETURN_IF_ERROR(Start());
      if (info_.channels != before.channels || info_.height != before.height ||
          info_.width != before.width)
        return IoError("the file was replaced while it was read");
    }
    if (ReadRows(row, rows, out.data())) return OkStatus();
    Close();
    return InvalidArgument("a JPEG that is damaged or cut off between rows ", next_row_, " and ",
                           row + rows, ": ", Printable(error_));
  }

 private:
  static JpegBlockReader* Self(j_common_ptr jpeg) {
    return static_cast<JpegBlockReader*>(jpeg->client_data);
  }
  static void OnError(j_common_ptr jpeg) {
    JpegBlockReader* self = Self(jpeg);
    char message[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, message);
    std::snprintf(self->error_, sizeof(error_), "%s", message);
    std::longjmp(self->jump_, 1);
  }
  static void OnMessage(j_common_ptr jpeg, int level) {
    if (level >= 0) return;
    ++jpeg->err->num_warnings;
    if (std::find(std::begin(kDamage), std::end(kDamage), jpeg->err->msg_code) != std::end(kDamage))
      OnError(jpeg);
  }
  static void OnProgress(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMaxScans)
      Self(jpeg)->Fail("it has too many scans");
  }
  static boolean OnFill(j_decompress_ptr jpeg) {
    JpegBlockReader* self = Self(reinterpret_cast<j_common_ptr>(jpeg));
    const int64_t left = self->file_bytes_ - self->offset_;
    if (left <= 0) self->Fail("the file ends too early");
    const auto count = static_cast<size_t>(std::min<int64_t>(left, sizeof(buffer_)));
    if (!self->Fetch(count)) self->Fail("the file cannot be read");
    jpeg->src->next_input_byte = reinterpret_cast<const JOCTET*>(self->buffer_);
    jpeg->src->bytes_in_buffer = count;
    return TRUE;
  }
  static void OnSkip(j_decompress_ptr jpeg, long bytes) {
    if (bytes <= 0) return;
    JpegBlockReader* self = Self(reinterpret_cast<j_common_ptr>(jpeg));
    const auto count = static_cast<size_t>(bytes);
    jpeg_source_mgr* source = jpeg->src;
    if (count <= source->bytes_in_buffer) {
      source->next_input_byte += count;
      source->bytes_in_buffer -= count;
      return;
    }
    self->offset_ += static_cast<int64_t>(count - source->bytes_in_buffer);
    source->bytes_in_buffer = 0;
  }

  bool Fetch(size_t count) {
    const Status status = file_.Read(offset_, {buffer_, count});
    offset_ += static_cast<int64_t>(count);
    return status.ok();
  }

  [[noreturn]] void Fail(const char* message) {
    std::snprintf(error_, sizeof(error_), "%s", message);
    std::longjmp(jump_, 1);
  }

  void Close() {
    if (open_) jpeg_destroy_decompress(&jpeg_);
    open_ = false;
  }

  Status Start() {
    Close();
    MSRT_ASSIGN_OR_RETURN(file_bytes_, file_.Bytes());
    offset_ = 0;
    next_row_ = 0;
    if (ReadHeader()) {
      info_.format = "JPEG";
      return OkStatus();
    }
    Close();
    return InvalidArgument("not a JPEG, or a damaged one: ", Printable(error_));
  }

  // Reads up to the first row. The coefficients of a progressive file are all in memory.
  bool ReadHeader() {
    if (setjmp(jump_) != 0) return false;
    DecodeHeader();
    return true;
  }

  void DecodeHeader() {
    open_ = true;
    jpeg_create_decompress(&jpeg_);
    source_.bytes_in_buffer = 0;
    source_.next_input_byte = nullptr;
    jpeg_.src = &source_;
    jpeg_.progress = &progress_;
    jpeg_read_header(&jpeg_, TRUE);
    const bool is_color = jpeg_.jpeg_color_space == JCS_YCbCr || jpeg_.jpeg_color_space == JCS_RGB;
    const bool is_cmyk = jpeg_.jpeg_color_space == JCS_YCCK || jpeg_.jpeg_color_space == JCS_CMYK;
    if (is_color) jpeg_.out_color_space = JCS_RGB;
    if (is_cmyk) jpeg_.out_color_space = JCS_CMYK;
    const int64_t coefficient_bytes =
        int64_t{jpeg_.image_width + 64} * (jpeg_.image_height + 64) * jpeg_.num_components * 2;
    if (jpeg_has_multiple_scans(&jpeg_) && coefficient_bytes > options_.max_block_bytes)
      Fail("it is progressive and too large to be decoded in rows; convert it to a TIFF");
    jpeg_start_decompress(&jpeg_);
    info_.height = jpeg_.output_height;
    info_.width = jpeg_.output_width;
    info_.channels = jpeg_.output_components;
    info_.dtype = DType::kU8;
  }

  // The frame of setjmp has nothing that a jump could leave undefined.
  bool ReadRows(int64_t row, int64_t rows, std::byte* out) {
    if (setjmp(jump_) != 0) return false;
    DecodeRows(row, rows, out);
    return true;
  }

  void DecodeRows(int64_t row, int64_t rows, std::byte* out) {
    for (; next_row_ < row + rows; ++next_row_) {
      const int64_t at = std::max<int64_t>(next_row_ - row, 0);
      auto* target = reinterpret_cast<JSAMPROW>(out + at * info_.width * info_.channels);
      if (jpeg_read_scanlines(&jpeg_, &target, 1) != 1) Fail("a row cannot be decoded");
    }
  }

  const ImageFile file_;
  const CodecOptions options_;
  ImageInfo info_;
  BlockLayout layout_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_source_mgr source_{};
  bool open_ = false;
  int64_t next_row_ = 0, file_bytes_ = 0, offset_ = 0;
  std::byte buffer_[16 * 1024];
  char error_[JMSG_LENGTH_MAX] = "";
  std::jmp_buf jump_;
};

}  // namespace

Result<std::unique_ptr<BlockReader>> OpenJpegBlocks(const std::string& path,
                                                    const CodecOptions& options) {
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForReading(path));
  auto reader = std::make_unique<JpegBlockReader>(std::move(file), options);
  MSRT_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<BlockReader>(std::move(reader));
}

}  // namespace msrt
