// A reduction over the virtual shards of a job (tree_reduce.h) whose bits do not depend on the
// number of ranks, for any number of them. AllReduce alone has this property for 1, 2, 4 and 8
// ranks, where the shards of a rank are one subtree.
#pragma once

#include <span>

#include "core/comm/communicator.h"

namespace msrt {

// A collective. `shards` are the arrays of `count` elements of this rank's shards
// (ShardsOfRank), `out` gets the reduction over all kVirtualShards. `out` may be one of the shards;
// otherwise nothing overlaps. Waits for the result.
Status ReduceShards(Communicator& comm, std::span<const void* const> shards, void* out,
                    size_t count, CommType type, CommReduce reduce, const WaitLimit& limit);

}  // namespace msrt
