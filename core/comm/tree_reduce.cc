#include "core/comm/tree_reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/comm/combine.h"

namespace msrt {
namespace {

// Blocks are small enough for all levels of the tree to stay in the first-level cache.
inline constexpr size_t kBlockBytes = 2048;
inline constexpr int kMaxLevels = 24;

// One block of elements, reduced over all parts.
struct BlockTree {
  BlockTree(std::span<const void* const> p, CommType t, CommReduce r)
      : parts(p), type(t), reduce(r) {}  // leaves the scratch blocks as they are

  std::span<const void* const> parts;
  CommType type;
  CommReduce reduce;
  size_t offset_bytes = 0;
  size_t count = 0;
  alignas(64) std::byte scratch[kMaxLevels][kBlockBytes];

  // Returns the value of the subtree over parts [first, first + width), or null if it is absent.
  // Its bytes are a part's own, or `out`.
  const void* Value(size_t first, size_t width, int level, void* out) {
    if (first >= parts.size()) return nullptr;
    if (width == 1) return static_cast<const std::byte*>(parts[first]) + offset_bytes;
    const void* left = Value(first, width / 2, level + 1, scratch[level + 1]);
    // The left value may be in the scratch block of the next level, so the right one gets `out`.
    const void* right = Value(first + width / 2, width / 2, level + 1, out);
    if (right == nullptr) return left;
    Combine(out, left, right, count, type, reduce);
    return out;
  }
};

}  // namespace

std::pair<int, int> ShardsOfRank(int rank, int ranks) {
  return {static_cast<int>(int64_t{rank} * kVirtualShards / ranks),
          static_cast<int>((int64_t{rank} + 1) * kVirtualShards / ranks)};
}

void TreeReduce(std::span<const void* const> parts, void* out, size_t count, CommType type,
                CommReduce reduce) {
  MSRT_CHECK(!parts.empty());
  const size_t element = CommTypeBytes(type);
  auto* bytes = static_cast<std::byte*>(out);
  if (parts.size() == 1) {
    if (out != parts[0] && count != 0) std::memcpy(out, parts[0], count * element);
    return;
  }
  if (parts.size() == 2) return Combine(out, parts[0], parts[1], count, type, reduce);
  MSRT_CHECK(parts.size() <= (size_t{1} << (kMaxLevels - 2)));
  BlockTree tree(parts, type, reduce);
  const size_t block = kBlockBytes / element;
  const size_t width = std::bit_ceil(parts.size());
  for (size_t i = 0; i < count; i += block) {
    tree.offset_bytes = i * element;
    tree.count = std::min(block, count - i);
    const void* value = tree.Value(0, width, 0, tree.scratch[0]);
    std::memcpy(bytes + i * element, value, tree.count * element);
  }
}

}  // namespace msrt
