// An image source on top of block readers: finds the blocks of a window, keeps decoded ones, and
// decodes ahead in a background thread.
#pragma once

#include <functional>
#include <memory>

#include "core/image/files/image_codec.h"
#include "core/image/files/image_source.h"

namespace msrt {

// Opens another reader of the same image.
using ReopenBlocks = std::function<Result<std::unique_ptr<BlockReader>>()>;

// `name` is the file, for messages.
Result<std::unique_ptr<ImageSource>> MakeBlockSource(std::string name,
                                                     std::unique_ptr<BlockReader> reader,
                                                     ReopenBlocks reopen,
                                                     const OpenOptions& options);

}  // namespace msrt
