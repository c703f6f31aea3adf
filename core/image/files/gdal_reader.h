// Reads images with GDAL where it is installed: COG, VRT, JPEG 2000 and its other formats.
#pragma once

#include "core/image/files/image_codec.h"

namespace msrt {

bool GdalIsInstalled();
Result<std::unique_ptr<BlockReader>> OpenGdalBlocks(const std::string& path,
                                                    const CodecOptions& options);

}  // namespace msrt
