// Engine "shm": the ranks are processes of one host and share an arena (shm_arena.h). Tensors of
// any size pass through its bounded buffers in pieces.
#pragma once

#include <memory>
#include <string>

#include "core/comm/job/store.h"
#include "core/comm/transport.h"

namespace msrt {

// A collective: every rank of the group calls it. The ranks find the arena through `store`, under
// keys that begin with `key`. Ranks that leave or die end the operations of the others; a
// rank that is stopped is noticed by the job's control connection, or after the stall limit.
Result<std::unique_ptr<CommTransport>> MakeShmTransport(
    int rank, int size, Store& store, const std::string& key, const std::string& group,
    std::chrono::steady_clock::time_point until);

}  // namespace msrt
