// Reads whole-slide images of pathology with OpenSlide where it is installed, as RGB.
#pragma once

#include "core/image/files/image_codec.h"

namespace msrt {

bool OpenSlideIsInstalled();
// Whether the name ends as slides do whose first bytes may look like another format.
bool HasSlideExtension(const std::string& path);
Result<std::unique_ptr<BlockReader>> OpenSlideBlocks(const std::string& path,
                                                     const CodecOptions& options);

}  // namespace msrt
