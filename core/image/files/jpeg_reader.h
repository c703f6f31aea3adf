// Reads bands of rows of JPEG files with libjpeg. Rows are decoded in order; going back starts
// again.
#pragma once

#include "core/image/files/image_codec.h"

namespace msrt {

Result<std::unique_ptr<BlockReader>> OpenJpegBlocks(const std::string& path,
                                                    const CodecOptions& options);

}  // namespace msrt
