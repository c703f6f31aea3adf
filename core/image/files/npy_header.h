// The header of NumPy's .npy files, for arrays in general and for those that are images: H x W,
// C x H x W or 1 x C x H x W.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/image/files/image_info.h"

namespace msrt {

inline constexpr size_t kMaxNpyHeaderBytes = 64 * 1024;

struct NpyArray {
  DType dtype = DType::kU8;
  std::vector<int64_t> shape = {};
  bool swapped = false;  // the bytes of an element are in the other order
  int64_t data_offset = 0;
};

// Parses the beginning of a file, of which `file_bytes` exist in all, and requires that the whole
// array is there. Element types are those of images and 64-bit integers.
Result<NpyArray> ParseNpyArray(std::span<const std::byte> begin, int64_t file_bytes);

struct NpyHeader {
  ImageInfo info = {};
  bool swapped = false;  // the bytes of an element are in the other order
  int64_t data_offset = 0;
};

// The same for an image.
Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> begin, int64_t file_bytes);

// The header of a C x H x W array in native byte order, padded to 64 bytes as NumPy does.
std::string MakeNpyHeader(const ImageInfo& info);

}  // namespace msrt
