#include <mutex>

#include "core/image/files/block_sink.h"
#include "core/image/files/npy_sink.h"
#include "core/image/files/tiff_store.h"
#include "core/image/files/unfinished_file.h"

namespace msrt {
namespace {

bool EndsWith(const std::string& path, std::string_view extension) {
  if (path.size() < extension.size()) return false;
  const std::string_view end = std::string_view(path).substr(path.size() - extension.size());
  for (size_t i = 0; i < end.size(); ++i) {
    const char c = end[i] >= 'A' && end[i] <= 'Z' ? static_cast<char>(end[i] - 'A' + 'a') : end[i];
    if (c != extension[i]) return false;
  }
  return true;
}

Result<std::unique_ptr<ImageSink>> CreateNpy(const std::string& path, const ImageInfo& info,
                                             const CreateOptions& options) {
  if (options.overviews) return Unsupported("a .npy file has no overviews: write a TIFF");
  return MakeNpySink(path, info, options);
}

Result<std::unique_ptr<ImageSink>> CreateTiff(const std::string& path, const ImageInfo& info,
                                              CreateOptions options) {
  MSRT_RETURN_IF_ERROR(CheckTiffOptions(info, options));
  // Before the job is identified: a resumed job must use the same.
  MSRT_ASSIGN_OR_RETURN(options.compression, ChooseCompression(info, options.compression));
  return MakeBlockSink(path, info, options, [&](bool has_blocks) {
    return OpenTiffStore(PartPath(path), info, options, has_blocks);
  });
}

class CallbackSink final : public ImageSink {
 public:
  CallbackSink(const ImageInfo& info, WriteWindow write) : info_(info), write_(std::move(write)) {}
  const ImageInfo& info() const override { return info_; }
  Status Write(const ImageWindow& asked, const ConstPixelBuffer& data) override {
    MSRT_ASSIGN_OR_RETURN(const ImageWindow window, CheckPixels(info_, asked, data));
    const std::lock_guard lock(mutex_);
    return write_(window, data);
  }
  Status Sync() override { return OkStatus(); }
  int64_t finished_rows() const override { return 0; }
  bool IsFinished(const ImageWindow&) const override { return false; }
  Status Finish() override { return OkStatus(); }

 private:
  const ImageInfo info_;
  const WriteWindow write_;
  std::mutex mutex_;
};

}  // namespace

Result<std::unique_ptr<ImageSink>> CreateImage(const std::string& path, const ImageInfo& info,
                                               const CreateOptions& options) {
  const auto create = [&]() -> Result<std::unique_ptr<ImageSink>> {
    MSRT_RETURN_IF_ERROR(CheckImageInfo(info));
    if (EndsWith(path, ".npy")) return CreateNpy(path, info, options);
    if (EndsWith(path, ".tif") || EndsWith(path, ".tiff")) return CreateTiff(path, info, options);
    return Unsupported("a result ends in .tif, .tiff or .npy");
  };
  Result<std::unique_ptr<ImageSink>> sink = create();
  if (!sink.ok()) return std::move(sink).status().Within(path);
  return sink;
}

Result<std::unique_ptr<ImageSink>> MakeCallbackSink(const ImageInfo& info, WriteWindow write) {
  MSRT_RETURN_IF_ERROR(CheckImageInfo(info));
  return std::unique_ptr<ImageSink>(std::make_unique<CallbackSink>(info, std::move(write)));
}

}  // namespace msrt
