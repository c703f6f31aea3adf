#include "core/image/files/npy_store.h"

#include <algorithm>

#include "core/image/files/image_file.h"
#include "core/image/files/npy_header.h"

namespace msrt {
namespace {

constexpr int64_t kNpyBandBytes = 1 << 20;

class NpyStore final : public BlockStore {
 public:
  NpyStore(ImageFile file, const ImageInfo& info, int64_t header_bytes)
      : file_(std::move(file)), info_(info), header_bytes_(header_bytes) {
    const int64_t row_bytes = info.channels * info.width * ElementBytes(info.dtype);
    const int64_t rows = std::clamp<int64_t>(kNpyBandBytes / row_bytes, 1, info.height);
    level_ = {info.height, info.width, rows, info.width};
  }

  std::span<const StoreLevel> levels() const override { return {&level_, 1}; }

  Result<std::vector<FileExtent>> WriteBlock(int, int64_t block,
                                             std::span<const std::byte> pixels) override {
    const int64_t row = block * level_.block_rows;
    const int64_t rows = std::min(level_.block_rows, info_.height - row);
    const int64_t row_bytes = info_.width * ElementBytes(info_.dtype);
    for (int64_t channel = 0; channel < info_.channels; ++channel) {
      const auto from = static_cast<size_t>(channel * level_.block_rows * row_bytes);
      const int64_t offset = header_bytes_ + (channel * info_.height + row) * row_bytes;
      MSRT_RETURN_IF_ERROR(
          file_.Write(offset, pixels.subspan(from, static_cast<size_t>(rows * row_bytes))));
    }
    // The place follows from the block; the bytes count for syncing.
    return std::vector<FileExtent>{{0, rows * row_bytes * info_.channels}};
  }

  Status Restore(std::span<const StoredBlock>) override { return OkStatus(); }
  Result<std::unique_ptr<ImageSource>> OpenWritten(int) override {
    return InternalError("a .npy file has one level");
  }
  Status CloseWritten() override { return OkStatus(); }
  Status Sync() override { return file_.Sync(); }
  Status Complete() override { return OkStatus(); }

 private:
  const ImageFile file_;
  const ImageInfo info_;
  const int64_t header_bytes_;
  StoreLevel level_;
};

}  // namespace

Result<std::unique_ptr<BlockStore>> OpenNpyStore(const std::string& part, const ImageInfo& info,
                                                 bool has_blocks) {
  MSRT_ASSIGN_OR_RETURN(ImageFile file, ImageFile::OpenForWriting(part));
  const std::string header = MakeNpyHeader(info);
  if (!has_blocks) {
    MSRT_RETURN_IF_ERROR(file.Truncate(0));
    MSRT_RETURN_IF_ERROR(file.Write(0, std::as_bytes(std::span(header.data(), header.size()))));
  }
  return std::unique_ptr<BlockStore>(
      std::make_unique<NpyStore>(std::move(file), info, static_cast<int64_t>(header.size())));
}

}  // namespace msrt
