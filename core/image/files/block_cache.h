// Decoded blocks of an image, least recently used first out, bounded in bytes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"

namespace msrt {

// Thread-safe. A block that several threads ask for is loaded once.
class BlockCache {
 public:
  using Block = std::shared_ptr<const std::vector<std::byte>>;
  using Load = std::function<Result<Block>()>;

  explicit BlockCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns block `key`, loaded by `load` if it is not there. No lock is held while `load` runs.
  // The newest block is kept even if it alone exceeds the limit.
  Result<Block> Get(int64_t key, const Load& load);

  int64_t max_bytes() const { return max_bytes_.load(); }
  // Makes the limit at least `max_bytes`.
  void Grow(int64_t max_bytes);

 private:
  struct Entry {
    Block block;  // null while it is loaded
    std::list<int64_t>::iterator position;
  };
  void Evict();  // requires the lock

  std::atomic<int64_t> max_bytes_;
  std::mutex mutex_;
  std::condition_variable loaded_;
  std::unordered_map<int64_t, Entry> entries_;
  std::list<int64_t> order_;  // of loaded blocks, the most recent first
  int64_t bytes_ = 0;
};

}  // namespace msrt
