// The interface between windows and codecs. A codec decodes blocks: tiles, strips or bands of rows.
// Those of TIFF, PNG and JPEG are in the image module, a shared library that is loaded when the
// first such image is opened, so that msrt itself does not depend on theirs. Both sides are
// compiled together: the module is refused unless its build string is equal.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/image/files/image_info.h"

namespace msrt {

// How an image is divided. Blocks at the right and lower border are cut off.
struct BlockLayout {
  int64_t rows = 1, cols = 1;  // of a block
  bool planar = false;         // a block has one channel; else all, interleaved
  bool sequential = false;     // going back means decoding from the beginning
  bool operator==(const BlockLayout&) const = default;
};

struct BlockIndex {
  int64_t plane = 0, row = 0, col = 0;  // in blocks
};

// Bytes of a decoded block at its full size: rows x cols x channels. The caller has checked the
// layout.
inline int64_t BlockBytes(const ImageInfo& info, const BlockLayout& layout) {
  return layout.rows * layout.cols * (layout.planar ? 1 : info.channels) * ElementBytes(info.dtype);
}

// Requires positive sizes and a block of at most `max_bytes`.
Status CheckBlockLayout(const ImageInfo& info, const BlockLayout& layout, int64_t max_bytes);

// One open image at one level. Used by one thread at a time.
class BlockReader {
 public:
  virtual ~BlockReader() = default;
  virtual const ImageInfo& info() const = 0;
  virtual const BlockLayout& layout() const = 0;
  // `out` has BlockBytes bytes. The part beyond the image's border is unspecified.
  virtual Status ReadBlock(const BlockIndex& index, std::span<std::byte> out) = 0;
  // The memory that the library below may keep between blocks, for planning under a memory limit.
  virtual int64_t cache_bytes() const { return 0; }
};

struct CodecOptions {
  int level = 0, page = 0;
  int64_t max_block_bytes = 0;
};

// Pixels of a tile or strip before TIFF compression: rows x cols x channels, interleaved.
struct TiffBlockFormat {
  int64_t rows = 0, cols = 0, channels = 0;
  DType dtype = DType::kU8;
  uint16_t compression = 1, predictor = 1;  // numbers of TIFF
};

using OpenCodec = Result<std::unique_ptr<BlockReader>> (*)(const std::string& path,
                                                           const CodecOptions& options);

struct ImageCodecs {
  const char* build;
  OpenCodec open_tiff, open_png, open_jpeg;
  // Whether this libtiff was built with the compression.
  bool (*has_tiff_compression)(uint16_t compression);
  Status (*encode_tiff_block)(const TiffBlockFormat& format, std::span<const std::byte> pixels,
                              std::vector<std::byte>* out);
};

inline constexpr char kImageModuleEntry[] = "msrt_image_codecs";
using ImageModuleEntry = const ImageCodecs* (*)();

// MSRT_VERSION is defined for the files that use this.
#define MSRT_IMAGE_MODULE_BUILD MSRT_VERSION ", images 2, " __VERSION__

}  // namespace msrt
