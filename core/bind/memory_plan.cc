#include "core/bind/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "core/base/allocator.h"
#include "core/base/checked_math.h"

namespace msrt {
namespace {

size_t LowerBound(std::span<const LiveBlock> blocks) {
  uint32_t steps = 0;
  for (const LiveBlock& b : blocks) steps = std::max(steps, b.last + 1);
  std::vector<int64_t> change(steps + 1, 0);
  for (const LiveBlock& b : blocks) {
    const auto bytes = static_cast<int64_t>(AlignUp(b.bytes, kTensorAlignment));
    change[b.first] += bytes;
    change[b.last + 1] -= bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t c : change) peak = std::max(peak, live += c);
  return static_cast<size_t>(peak);
}

// Assigns offsets in the given order. Assigned blocks are kept sorted by offset, so that one walk
// over those alive at the same time finds every gap. Returns the bytes of the arena.
size_t AssignOffsets(std::span<const LiveBlock> blocks, std::span<const uint32_t> order,
                     std::vector<size_t>* offsets) {
  std::vector<uint32_t> assigned;
  assigned.reserve(blocks.size());
  size_t arena = 0;
  for (uint32_t b : order) {
    const size_t bytes = AlignUp(blocks[b].bytes, kTensorAlignment);
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (uint32_t p : assigned) {
      if (blocks[p].last < blocks[b].first || blocks[b].last < blocks[p].first) continue;
      const size_t offset = (*offsets)[p];
      if (offset > end && offset - end >= bytes && offset - end < best_gap) {
        best_gap = offset - end;
        best = end;
      }
      end = std::max(end, offset + AlignUp(blocks[p].bytes, kTensorAlignment));
    }
    const size_t offset = best != SIZE_MAX ? best : end;
    (*offsets)[b] = offset;
    arena = std::max(arena, offset + bytes);
    assigned.insert(
        std::upper_bound(assigned.begin(), assigned.end(), b,
                         [&](uint32_t x, uint32_t y) { return (*offsets)[x] < (*offsets)[y]; }),
        b);
  }
  return arena;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const LiveBlock> blocks) {
  MemoryPlan plan;
  plan.lower_bound_bytes = LowerBound(blocks);
  plan.offsets.resize(blocks.size());
  plan.arena_bytes = SIZE_MAX;
  const auto length = [&](uint32_t b) { return uint64_t{blocks[b].last} - blocks[b].first + 1; };
  std::vector<uint32_t> order(blocks.size());
  std::vector<size_t> offsets(blocks.size());
  for (int strategy = 0; strategy < 4 && plan.arena_bytes > plan.lower_bound_bytes; ++strategy) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
      const LiveBlock &a = blocks[x], &b = blocks[y];
      switch (strategy) {
        case 0:
          return a.bytes != b.bytes ? a.bytes > b.bytes : length(x) > length(y);
        case 1:
          return a.bytes * length(x) > b.bytes * length(y);
        case 2:
          return length(x) != length(y) ? length(x) > length(y) : a.bytes > b.bytes;
        default:
          return a.first != b.first ? a.first < b.first : a.bytes > b.bytes;
      }
    });
    const size_t arena = AssignOffsets(blocks, order, &offsets);
    if (arena < plan.arena_bytes) {
      plan.arena_bytes = arena;
      plan.offsets = offsets;
    }
  }
  if (blocks.empty()) plan.arena_bytes = 0;
  return plan;
}

}  // namespace msrt
