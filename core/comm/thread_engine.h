// Engine "threads": the ranks are threads of one process. Buffers are not copied but announced; a
// receiver reads the sender's memory, and a reduction reads and writes that of all ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/comm/comm_op.h"

namespace msrt {

// Returns the communicators of ranks 0 to size - 1. Each belongs to one thread from then on.
Result<std::vector<std::unique_ptr<Communicator>>> MakeThreadCommunicators(
    int size, const std::string& group = "world",
    std::chrono::milliseconds stall_limit = kDefaultStallLimit);

}  // namespace msrt
