// An image sink on top of a block store: assembles windows to blocks, halves complete blocks for
// the overviews, keeps the journal, and renames the file at the end.
#pragma once

#include <memory>
#include <string>

#include "core/image/files/block_store.h"
#include "core/image/files/image_sink.h"
#include "core/image/files/overview.h"

namespace msrt {

// Opens the store on the unfinished file. `has_blocks` says that an earlier run left blocks in it,
// which the sink restores next; else the store begins an empty file.
using OpenStore = std::function<Result<std::unique_ptr<BlockStore>>(bool has_blocks)>;

Result<std::unique_ptr<ImageSink>> MakeBlockSink(const std::string& path, const ImageInfo& info,
                                                 const CreateOptions& options,
                                                 const OpenStore& open_store);

}  // namespace msrt
