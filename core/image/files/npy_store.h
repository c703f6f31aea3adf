// Blocks of a .npy file: bands of whole rows, each written to its place in every channel.
#pragma once

#include "core/image/files/block_store.h"

namespace msrt {

// `part` is the unfinished file. Without `has_blocks` it begins empty.
Result<std::unique_ptr<BlockStore>> OpenNpyStore(const std::string& part, const ImageInfo& info,
                                                 bool has_blocks);

}  // namespace msrt
