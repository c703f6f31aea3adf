// Fixed-tree reduction. A sum over the work of a job is defined on kVirtualShards equal shards, in
// one binary tree:
//
//            +                       8 shards, whatever the number of ranks
//        +       +
//      +   +   +   +
//     0 1 2 3 4 5 6 7
//
// With 1, 2, 4 or 8 ranks, rank r owns the consecutive shards of ShardsOfRank(r, ranks). These are
// the leaves of one subtree. The rank reduces them with TreeReduce, which yields the value of that
// subtree; its contribution to a collective is that value, rounded to the element type. The
// collective continues the same tree over the ranks' contributions, in the order of ranks. So the
// same additions happen for each of these numbers of ranks, and the result has the same bits.
//
// With another number of ranks (3, 5, 6, 7, more than 8) shards do not form one subtree per rank.
// The collective still reduces in a fixed tree: the ranks in order, padded on the right to a power
// of two with absent leaves; a node with one absent child is the other child. The bits then depend
// on the number of ranks, on nothing else: not on the engine, on timing or on chunk sizes.
// ReduceShards (reduce_shards.h) has the bits of 1, 2, 4 and 8 ranks with any number of them.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/comm/communicator.h"

namespace msrt {

// The shards [first, last) of a rank. For ranks that do not divide kVirtualShards the shards are
// distributed as evenly as possible; beyond kVirtualShards ranks some have none.
std::pair<int, int> ShardsOfRank(int rank, int ranks);

// Reduces `parts`, arrays of `count` elements, in the binary tree described above, one leaf per
// part. `out` may be one of the parts; otherwise nothing overlaps. At least one part.
void TreeReduce(std::span<const void* const> parts, void* out, size_t count, CommType type,
                CommReduce reduce);

}  // namespace msrt
