#include "core/comm/job/progress.h"

#include <algorithm>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

constexpr uint64_t kActiveBit = uint64_t{1} << 63;
constexpr int kOpShift = 56;
constexpr uint64_t kSequenceMask = (uint64_t{1} << kOpShift) - 1;

}  // namespace

std::string OperationText(const CommProgress& progress) {
  return StrCat(CommKindName(progress.op), " #", progress.sequence, " of group '", progress.group,
                "'");
}

std::string DoingText(const std::vector<CommProgress>& operations) {
  if (operations.empty()) return "before its first operation";
  const auto active = std::find_if(operations.begin(), operations.end(),
                                   [](const CommProgress& p) { return p.active; });
  if (active != operations.end()) return StrCat("in ", OperationText(*active));
  return StrCat("after ", OperationText(operations.front()));
}

void ProgressSlot::Enter(CommKind op, uint64_t sequence, uint64_t bytes) {
  Leave();
  bytes_.store(bytes, std::memory_order_release);
  word_.store(kActiveBit | static_cast<uint64_t>(op) << kOpShift | (sequence & kSequenceMask),
              std::memory_order_release);
}

void ProgressSlot::Leave() {
  word_.store(word_.load(std::memory_order_relaxed) & ~kActiveBit, std::memory_order_release);
}

CommProgress ProgressSlot::Read() const {
  uint64_t word, again = word_.load(std::memory_order_acquire), bytes;
  do {
    word = again;
    bytes = bytes_.load(std::memory_order_acquire);
    again = word_.load(std::memory_order_acquire);
  } while (again != word);
  const bool active = (word & kActiveBit) != 0;
  // Between two operations the bytes may already be those of the next.
  return {group_,
          group_id_,
          static_cast<CommKind>((word & ~kActiveBit) >> kOpShift),
          word & kSequenceMask,
          active ? bytes : 0,
          active};
}

std::shared_ptr<ProgressSlot> ProgressBoard::Open(std::string group, uint64_t group_id) {
  auto slot = std::make_shared<ProgressSlot>(std::move(group), group_id);
  const std::lock_guard lock(mutex_);
  slots_.push_back(slot);
  return slot;
}

std::vector<CommProgress> ProgressBoard::Read(size_t max_count) {
  std::vector<CommProgress> all;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(slots_, [&](const std::shared_ptr<const ProgressSlot>& slot) {
      const bool dropped = slot.use_count() == 1;  // before the read: the owner writes no more
      CommProgress progress = slot->Read();
      if (progress.sequence != 0) all.push_back(std::move(progress));
      return dropped;
    });
  }
  std::stable_partition(all.begin(), all.end(), [](const CommProgress& p) { return p.active; });
  if (all.size() > max_count) all.resize(max_count);
  return all;
}

}  // namespace msrt
