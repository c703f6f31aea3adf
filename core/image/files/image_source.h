// Images that are read window by window, whatever their size: TIFF, PNG, JPEG, .npy, and what GDAL
// and OpenSlide read where they are installed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/image/files/image_info.h"

namespace msrt {

// Thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual const ImageInfo& info() const = 0;
  // Reads the window into `out`, in the image's own element type or converted to f32. Values are
  // those of the file: indices of a palette stay indices, bits of a bilevel image become 0 and 1.
  virtual Status Read(const ImageWindow& window, const PixelBuffer& out) = 0;
  // Starts to decode the window in the background, for the next Read. Errors appear in that Read.
  // Replaces an earlier request that has not begun.
  virtual void ReadAhead(const ImageWindow& window) { (void)window; }
  // The memory that the source may hold between reads, for planning under a memory limit.
  virtual int64_t cache_bytes() const { return 0; }
  // Lets the source hold up to so many bytes, so that it keeps the rows of blocks of a whole
  // window: for windows that overlap. By default it holds cache_bytes(), which suffices for bands
  // of rows.
  virtual void AllowCache(int64_t bytes) { (void)bytes; }
  // The rows of a block; 0: there are no blocks.
  virtual int64_t block_rows() const { return 0; }
  // How many blocks (tiles, strips or bands of rows) have been decoded so far.
  virtual int64_t decoded_blocks() const { return 0; }
};

struct OpenOptions {
  int level = 0;  // of the pyramid; 0 is the full resolution
  int page = 0;   // of a file with several images
  // The limit on decoded blocks that are kept; 0: two rows of blocks, so that bands of rows decode
  // each block once.
  int64_t cache_bytes = 0;
  // A file whose tile or strip needs more is refused.
  int64_t max_block_bytes = int64_t{256} << 20;
  int decoders = 2;  // the number of threads that may decode at once
  // Whether GDAL and OpenSlide are tried for what msrt does not read itself. They may open further
  // files that the file names.
  bool use_installed_readers = true;
};

// Opens an image by its contents. Errors name the file.
Result<std::unique_ptr<ImageSource>> OpenImage(const std::string& path,
                                               const OpenOptions& options = {});

// A source whose windows a function fills in the image's own element type. The function may be
// called from several threads at once.
using ReadWindow = std::function<Status(const ImageWindow& window, const PixelBuffer& out)>;
Result<std::unique_ptr<ImageSource>> MakeCallbackSource(const ImageInfo& info, ReadWindow read);

}  // namespace msrt
