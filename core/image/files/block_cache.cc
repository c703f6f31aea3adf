#include "core/image/files/block_cache.h"

#include <algorithm>

#include "core/base/catch_as_status.h"

namespace msrt {

Result<BlockCache::Block> BlockCache::Get(int64_t key, const Load& load) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) break;
    if (found->second.block != nullptr) {
      order_.splice(order_.begin(), order_, found->second.position);
      return found->second.block;
    }
    loaded_.wait(lock);  // if that load fails, this thread tries by itself
  }
  entries_.emplace(key, Entry{});
  lock.unlock();
  Status status;
  Block block;
  const Status thrown = CatchAsStatus([&] {
    Result<Block> result = load();
    if (result.ok()) block = *std::move(result);
    else status = std::move(result).status();
  });
  if (!thrown.ok()) status = thrown;
  lock.lock();
  // The entry is removed on any failure, also of the list, so that no thread waits for it forever.
  if (status.ok()) status = CatchAsStatus([&] { order_.push_front(key); });
  if (!status.ok()) {
    entries_.erase(key);
  } else {
    entries_[key] = {block, order_.begin()};
    bytes_ += static_cast<int64_t>(block->size());
    Evict();
  }
  loaded_.notify_all();
  if (!status.ok()) return status;
  return block;
}

void BlockCache::Grow(int64_t max_bytes) {
  const std::lock_guard lock(mutex_);
  max_bytes_.store(std::max(max_bytes_.load(), max_bytes));
}

void BlockCache::Evict() {
  while (bytes_ > max_bytes_ && order_.size() > 1) {
    const auto oldest = entries_.find(order_.back());
    bytes_ -= static_cast<int64_t>(oldest->second.block->size());
    entries_.erase(oldest);
    order_.pop_back();
  }
}

}  // namespace msrt
