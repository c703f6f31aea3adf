// Directories of a TIFF: the format of the current one, the levels of a pyramid, and GeoTIFF's
// tags.
#pragma once

#include "core/image/files/image_info.h"
#include "core/image/files/tiff_handle.h"

namespace msrt {

// The stored form of the pixels of the current directory.
struct TiffFormat {
  int64_t height = 0, width = 0, channels = 0;
  int bits = 0;              // 1, 2 and 4 are read as u8
  DType dtype = DType::kU8;  // after unpacking
  uint16_t compression = 1, photometric = 1;
  bool planar = false, tiled = false;
  bool operator==(const TiffFormat&) const = default;
};

// Reads and checks the format. Forms that are not supported are named.
Result<TiffFormat> ReadTiffFormat(TiffHandle* handle);

// Makes the directory of a page and level current, and returns its number of levels in `*levels`
// and its format. Levels are reduced images, in sub-directories or in the pages that follow.
Result<TiffFormat> SelectTiffLevel(TiffHandle* handle, int page, int level, TiffFormat* base,
                                   int* levels);

// Of the current directory.
void ReadTiffMetadata(TIFF* tiff, ImageInfo* info);

}  // namespace msrt
