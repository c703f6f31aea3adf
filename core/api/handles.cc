#include "core/api/handles.h"

#include <atomic>
#include <bit>
#include <mutex>

namespace msrt {
namespace {

constexpr int kHalf = sizeof(uintptr_t) * 4;  // low half: slot; high half: generation
constexpr uintptr_t kHalfMask = (uintptr_t{1} << kHalf) - 1;
constexpr uint32_t kNoSlot = UINT32_MAX;

struct Slot {
  std::mutex mutex;          // guards all but next_free
  uintptr_t generation = 1;  // of the slot's current or next handle; never 0, so no handle is null
  HandleKind kind = HandleKind::kNone;
  std::shared_ptr<void> object;
  uint32_t next_free = kNoSlot;  // guarded by the table's mutex
};

// Slots never move, so that a look-up needs only its slot's lock. Chunk c holds kFirstChunk * 2^c
// slots and is never freed.
class HandleTable {
 public:
  // Returns a free slot. Throws std::bad_alloc.
  uint32_t Acquire() {
    std::lock_guard lock(mutex_);
    if (free_ != kNoSlot) {
      const uint32_t index = free_;
      free_ = At(index)->next_free;
      return index;
    }
    const uint32_t index = count_.load(std::memory_order_relaxed);
    const int chunk = ChunkOf(index);
    if (chunk >= kChunks) throw std::bad_alloc();
    if (chunks_[chunk] == nullptr) chunks_[chunk] = new Slot[size_t{kFirstChunk} << chunk];
    count_.store(index + 1, std::memory_order_release);
    return index;
  }

  void Release(uint32_t index) {
    std::lock_guard lock(mutex_);
    At(index)->next_free = free_;
    free_ = index;
  }

  // Returns null for an index that was never a slot.
  Slot* Find(uintptr_t index) {
    if (index >= count_.load(std::memory_order_acquire)) return nullptr;
    return At(static_cast<uint32_t>(index));
  }

 private:
  static constexpr uint32_t kFirstChunk = 64;
  static constexpr int kChunks = 24;

  static int ChunkOf(uint32_t index) { return std::bit_width(index / kFirstChunk + 1) - 1; }
  Slot* At(uint32_t index) {
    const int chunk = ChunkOf(index);
    return &chunks_[chunk][index - ((kFirstChunk << chunk) - kFirstChunk)];
  }

  std::mutex mutex_;
  std::atomic<uint32_t> count_{0};
  Slot* chunks_[kChunks] = {};  // each written once, before count_ includes its slots
  uint32_t free_ = kNoSlot;
};

// Has no destructor: an application may destroy handles while the process exits, and the table must
// still be there.
constinit HandleTable table;

std::string_view KindName(HandleKind kind) {
  switch (kind) {
    case HandleKind::kNone:
      break;
    case HandleKind::kRuntime:
      return "runtime";
    case HandleKind::kModel:
      return "model";
    case HandleKind::kSession:
      return "session";
    case HandleKind::kTensor:
      return "tensor";
    case HandleKind::kGraph:
      return "graph";
    case HandleKind::kImage:
      return "image";
    case HandleKind::kList:
      return "list";
    case HandleKind::kDataset:
      return "dataset";
    case HandleKind::kTrainer:
      return "trainer";
  }
  return "unknown";
}

}  // namespace

uintptr_t InsertHandle(HandleKind kind, std::shared_ptr<void> object) {
  const uint32_t index = table.Acquire();
  Slot* slot = table.Find(index);
  std::lock_guard lock(slot->mutex);
  slot->kind = kind;
  slot->object = std::move(object);
  return (slot->generation << kHalf) | index;
}

Result<std::shared_ptr<void>> FindHandle(uintptr_t handle, HandleKind kind,
                                         std::string_view argument) {
  if (handle == 0)
    return InvalidArgument(argument, " is null, must be a ", KindName(kind), " handle");
  const uintptr_t generation = handle >> kHalf;
  Slot* slot = table.Find(handle & kHalfMask);
  if (slot == nullptr || generation == 0)
    return InvalidArgument(argument, " is not a handle of msrt");
  uintptr_t current;
  HandleKind found;
  {
    std::lock_guard lock(slot->mutex);
    if (slot->generation == generation && slot->kind == kind) return slot->object;
    current = slot->generation;
    found = slot->kind;
  }
  if (generation < current)
    return InvalidArgument(argument, ": the ", KindName(kind), " handle was destroyed");
  if (generation > current || found == HandleKind::kNone)
    return InvalidArgument(argument, " is not a handle of msrt");
  return InvalidArgument(argument, ": a ", KindName(found), " handle was passed where a ",
                         KindName(kind), " is needed");
}

std::shared_ptr<void> RemoveHandle(uintptr_t handle, HandleKind kind) noexcept {
  const uintptr_t generation = handle >> kHalf;
  Slot* slot = table.Find(handle & kHalfMask);
  if (slot == nullptr) return nullptr;
  std::shared_ptr<void> object;
  {
    std::lock_guard lock(slot->mutex);
    if (slot->generation != generation || slot->kind != kind) return nullptr;
    object = std::move(slot->object);
    slot->object.reset();
    slot->kind = HandleKind::kNone;
    ++slot->generation;
  }
  // A slot that has used all generations is never reused.
  if (generation < kHalfMask - 1) table.Release(static_cast<uint32_t>(handle & kHalfMask));
  return object;
}

}  // namespace msrt
