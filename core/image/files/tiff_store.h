// Blocks of a TIFF file that is written: tiles or strips are appended, and the directories follow
// at the end. Compression is done by the image module; uncompressed files need no module.
#pragma once

#include "core/image/files/block_store.h"
#include "core/image/files/image_sink.h"

namespace msrt {

// The bytes of a strip, where the result has no tiles; it has at least one row.
inline constexpr int64_t kStripBytes = 256 << 10;

// Refuses options and images that a TIFF cannot hold.
Status CheckTiffOptions(const ImageInfo& info, const CreateOptions& options);

// Replaces kAuto, and refuses a compression that the image module lacks.
Result<Compression> ChooseCompression(const ImageInfo& info, Compression compression);

// `part` is the unfinished file. Without `has_blocks` it begins empty. Requires checked
// options and a chosen compression.
Result<std::unique_ptr<BlockStore>> OpenTiffStore(const std::string& part, const ImageInfo& info,
                                                  const CreateOptions& options, bool has_blocks);

}  // namespace msrt
