// The header of NumPy's .npy files, for arrays that are images: H x W, C x H x W or 1 x C x H x W.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/image/image_info.h"

namespace msrt {

inline constexpr size_t kMaxNpyHeaderBytes = 64 * 1024;

struct NpyHeader {
  ImageInfo info = {};
  bool swapped = false;  // the bytes of an element are in the other order
  int64_t data_offset = 0;
};

// Parses the beginning of a file, of which `file_bytes` exist in all.
Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> begin, int64_t file_bytes);

// The header of a C x H x W array in native byte order, padded to 64 bytes as NumPy does.
std::string MakeNpyHeader(const ImageInfo& info);

}  // namespace msrt
