// Compresses tiles and strips with libtiff.
#pragma once

#include "core/image/files/image_codec.h"

namespace msrt {

bool HasTiffCompression(uint16_t compression);
// Thread-safe.
Status EncodeTiffBlock(const TiffBlockFormat& format, std::span<const std::byte> pixels,
                       std::vector<std::byte>* out);

}  // namespace msrt
