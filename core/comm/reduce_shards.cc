#include "core/comm/reduce_shards.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "core/comm/combine.h"
#include "core/comm/tree_reduce.h"

namespace msrt {
namespace {

// Ranks gather the values of all subtrees, so a block bounds the memory that this takes.
inline constexpr size_t kGatherBytes = size_t{1} << 18;

// The shards [first, first + width) as a node of the tree.
struct Subtree {
  int first, width;
};

// The fewest subtrees that cover the shards of a rank.
std::vector<Subtree> SubtreesOfRank(int rank, int ranks) {
  std::vector<Subtree> subtrees;
  auto [first, last] = ShardsOfRank(rank, ranks);
  while (first < last) {
    int width = first == 0 ? kVirtualShards : first & -first;
    while (first + width > last) width /= 2;
    subtrees.push_back({first, width});
    first += width;
  }
  return subtrees;
}

// The tree above the subtrees, whose values are arrays of `count` elements in `values`.
struct UpperTree {
  std::vector<Subtree> subtrees;
  std::byte* values;
  size_t count, stride;
  CommType type;
  CommReduce reduce;

  // Reduces into the value of the first subtree of the range.
  std::byte* Value(int first, int width) const {
    for (size_t i = 0; i < subtrees.size(); ++i)
      if (subtrees[i].first == first && subtrees[i].width == width) return values + i * stride;
    std::byte* left = Value(first, width / 2);
    Combine(left, left, Value(first + width / 2, width / 2), count, type, reduce);
    return left;
  }
};

Status AwaitWork(Result<CommWorkPtr> work, const WaitLimit& limit) {
  if (!work.ok()) return std::move(work).status();
  return (*work)->Wait(limit);
}

}  // namespace

Status ReduceShards(Communicator& comm, std::span<const void* const> shards, void* out,
                    size_t count, CommType type, CommReduce reduce, const WaitLimit& limit) {
  const int ranks = comm.size();
  const auto [first_shard, last_shard] = ShardsOfRank(comm.rank(), ranks);
  if (shards.size() != static_cast<size_t>(last_shard - first_shard))
    return InvalidArgument("rank ", comm.rank(), " in group '", comm.group(),
                           "', ReduceShards: ", shards.size(), " shards, this rank has ",
                           last_shard - first_shard);
  if (ranks <= kVirtualShards && std::has_single_bit(static_cast<unsigned>(ranks))) {
    TreeReduce(shards, out, count, type, reduce);
    return AwaitWork(comm.AllReduce(out, count, type, reduce, CommOrder::kFixedTree), limit);
  }
  const size_t element = CommTypeBytes(type), block = kGatherBytes / element;
  const std::vector<Subtree> own = SubtreesOfRank(comm.rank(), ranks);
  UpperTree tree{{}, nullptr, 0, 0, type, reduce};
  std::vector<size_t> nodes;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<Subtree> subtrees = SubtreesOfRank(r, ranks);
    nodes.push_back(subtrees.size());
    tree.subtrees.insert(tree.subtrees.end(), subtrees.begin(), subtrees.end());
  }
  const size_t room = std::min(block, count) * element;
  const auto mine = std::make_unique_for_overwrite<std::byte[]>(room * own.size() + 1);
  const auto all = std::make_unique_for_overwrite<std::byte[]>(room * tree.subtrees.size() + 1);
  tree.values = all.get();
  for (size_t begin = 0; begin < count; begin += block) {
    tree.count = std::min(block, count - begin);
    tree.stride = tree.count * element;
    for (size_t i = 0; i < own.size(); ++i) {
      std::vector<const void*> parts;
      for (int s = own[i].first; s < own[i].first + own[i].width; ++s)
        parts.push_back(
            static_cast<const std::byte*>(shards[static_cast<size_t>(s - first_shard)]) +
            begin * element);
      TreeReduce(parts, mine.get() + i * tree.stride, tree.count, type, reduce);
    }
    std::vector<size_t> bytes;
    for (const size_t n : nodes) bytes.push_back(n * tree.stride);
    MSRT_RETURN_IF_ERROR(AwaitWork(comm.AllGather(mine.get(), all.get(), bytes), limit));
    std::memcpy(static_cast<std::byte*>(out) + begin * element, tree.Value(0, kVirtualShards),
                tree.stride);
  }
  return OkStatus();
}

}  // namespace msrt
