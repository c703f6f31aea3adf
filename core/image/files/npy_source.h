// Windows of .npy files, read at their offsets: nothing is decoded and nothing is kept.
#pragma once

#include "core/image/files/image_source.h"

namespace msrt {

Result<std::unique_ptr<ImageSource>> OpenNpy(const std::string& path);

}  // namespace msrt
