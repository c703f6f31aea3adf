// The default Io with progress reports while it writes a file.
#pragma once

#include <functional>
#include <memory>

#include "core/base/io.h"

namespace msrt {

// `watch` is called with the bytes written so far and the total, on the thread that writes.
std::unique_ptr<Io> MakeWatchedIo(std::function<void(uint64_t written, uint64_t total)> watch);

}  // namespace msrt
