// Loads libmsrt_images.so, which has the codecs of TIFF, PNG and JPEG, from beside msrt's library
// or the program.
#pragma once

#include "core/image/files/image_codec.h"

namespace msrt {

// Returns the codecs, loaded by the first call that finds them. The error names the places that
// were tried.
Result<const ImageCodecs*> LoadImageCodecs();

}  // namespace msrt
