#include "core/bind/memory_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/allocator.h"
#include "core/base/checked_math.h"

namespace msrt {
namespace {

uint32_t StepsOf(std::span<const LiveBlock> blocks) {
  uint32_t steps = 0;
  for (const LiveBlock& b : blocks) steps = std::max(steps, b.last + 1);
  return steps;
}

size_t LowerBound(std::span<const LiveBlock> blocks) {
  std::vector<int64_t> change(StepsOf(blocks) + 1, 0);
  for (const LiveBlock& b : blocks) {
    const auto bytes = static_cast<int64_t>(AlignUp(b.bytes, kTensorAlignment));
    change[b.first] += bytes;
    change[b.last + 1] -= bytes;
  }
  int64_t live = 0, peak = 0;
  for (int64_t c : change) peak = std::max(peak, live += c);
  return static_cast<size_t>(peak);
}

// The blocks assigned so far, by the time they are alive.
class LiveIndex {
 public:
  explicit LiveIndex(uint32_t steps)
      : leaves_(std::bit_ceil(std::max(steps, 1u))),
        covers_(2 * size_t{leaves_}, kNone),
        starts_(steps, kNone) {}

  void Add(uint32_t block, uint32_t first, uint32_t last) {
    Push(block, &starts_[first]);
    // The nodes of a segment tree that together cover the interval.
    for (uint32_t l = first + leaves_, r = last + 1 + leaves_; l < r; l /= 2, r /= 2) {
      if ((l & 1) != 0) Push(block, &covers_[l++]);
      if ((r & 1) != 0) Push(block, &covers_[--r]);
    }
  }

  // Appends the blocks that are alive at some time in [first, last]: those alive at `first`, and
  // those that begin later.
  void Find(uint32_t first, uint32_t last, std::vector<uint32_t>* out) const {
    for (uint32_t node = first + leaves_; node != 0; node /= 2) Append(covers_[node], out);
    for (uint32_t step = first + 1; step <= last; ++step) Append(starts_[step], out);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    uint32_t block, next;
  };
  void Push(uint32_t block, uint32_t* list) {
    entries_.push_back({block, *list});
    *list = static_cast<uint32_t>(entries_.size() - 1);
  }
  void Append(uint32_t list, std::vector<uint32_t>* out) const {
    for (; list != kNone; list = entries_[list].next) out->push_back(entries_[list].block);
  }

  const uint32_t leaves_;
  std::vector<uint32_t> covers_, starts_;  // lists by node of the tree, and by first step
  std::vector<Entry> entries_;
};

// Assigns offsets in the given order. A walk over the blocks alive at the same time, by offset,
// finds every gap. Returns the bytes of the arena.
size_t AssignOffsets(std::span<const LiveBlock> blocks, std::span<const uint32_t> order,
                     std::vector<size_t>* offsets) {
  LiveIndex assigned(StepsOf(blocks));
  std::vector<uint32_t> alive;
  size_t arena = 0;
  for (uint32_t b : order) {
    const size_t bytes = AlignUp(blocks[b].bytes, kTensorAlignment);
    alive.clear();
    assigned.Find(blocks[b].first, blocks[b].last, &alive);
    std::sort(alive.begin(), alive.end(),
              [&](uint32_t x, uint32_t y) { return (*offsets)[x] < (*offsets)[y]; });
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (uint32_t p : alive) {
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
    assigned.Add(b, blocks[b].first, blocks[b].last);
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
