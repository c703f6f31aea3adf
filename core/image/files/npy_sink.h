// Results as NumPy's .npy files. A pixel of such a file has its place from the beginning, so
// windows are written there at once, and of blocks that are not complete only a bit for each pixel
// is kept.
#pragma once

#include "core/image/files/image_sink.h"

namespace msrt {

// The blocks in which the journal counts what is complete.
inline constexpr int64_t kNpyBlockRows = 64, kNpyBlockCols = 256;

Result<std::unique_ptr<ImageSink>> MakeNpySink(const std::string& path, const ImageInfo& info,
                                               const CreateOptions& options);

}  // namespace msrt
