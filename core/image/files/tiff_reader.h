// Reads tiles and strips of TIFF files with libtiff.
#pragma once

#include "core/image/files/image_codec.h"

namespace msrt {

Result<std::unique_ptr<BlockReader>> OpenTiffBlocks(const std::string& path,
                                                    const CodecOptions& options);

}  // namespace msrt
