// Images that are written window by window. A result grows in OUT.part beside its journal
// OUT.journal, and only Finish gives it its name: a file named OUT is complete. After a kill the
// same job can continue where the journal ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/image/files/image_info.h"

namespace msrt {

// Thread-safe, except that Finish is the last call.
class ImageSink {
 public:
  virtual ~ImageSink() = default;  // without Finish the unfinished files stay, for resuming
  virtual const ImageInfo& info() const = 0;
  // Takes all channels of a window, in the image's element type. Each pixel is written once, in any
  // order; blocks that are not complete are kept in memory, so bands of rows or tiles from top to
  // bottom need the least. A resumed sink ignores pixels that it already has.
  virtual Status Write(const ImageWindow& window, const ConstPixelBuffer& data) = 0;
  // Makes what is complete survive a kill or a power failure. The sink does this by itself every
  // 128 MiB.
  virtual Status Sync() = 0;
  // All rows before this one are complete.
  virtual int64_t finished_rows() const = 0;
  // Whether all pixels of the window are complete.
  virtual bool IsFinished(const ImageWindow& window) const = 0;
  // Completes the file and gives it its name. An error if pixels are missing or a write failed.
  virtual Status Finish() = 0;
};

enum class Compression { kAuto, kNone, kPackBits, kLzw, kDeflate, kZstd };
enum class BigTiff { kAuto, kYes, kNo };

struct CreateOptions {
  // kAuto: Deflate for images with a palette if the image module is there, else none.
  Compression compression = Compression::kAuto;
  int64_t tile = 256;   // rows and columns of a tile, a multiple of 16; 0: strips
  bool planar = false;  // a plane per channel instead of interleaved channels
  BigTiff big_tiff = BigTiff::kAuto;
  bool overviews = false;  // half, quarter, ... resolutions: means, or the most frequent class
  bool resume = false;     // continue OUT.part if there is one; it must be of the same job
  uint64_t job = 0;        // identifies everything that determines the pixels, for resuming
  int64_t max_pending_bytes = int64_t{2} << 30;  // of blocks that are not complete
};

// Creates a TIFF (.tif, .tiff) or NumPy (.npy) file, by the extension.
Result<std::unique_ptr<ImageSink>> CreateImage(const std::string& path, const ImageInfo& info,
                                               const CreateOptions& options = {});

// Removes the unfinished files of a result, if there are any.
void RemoveUnfinished(const std::string& path);

// A sink that passes windows to a function. The function is called by one thread at a time.
using WriteWindow = std::function<Status(const ImageWindow& window, const ConstPixelBuffer& data)>;
Result<std::unique_ptr<ImageSink>> MakeCallbackSink(const ImageInfo& info, WriteWindow write);

}  // namespace msrt
