// A lock on state that sessions share: any number of runs that read it, or one that writes it.
#pragma once

#include "core/base/turns.h"

namespace msrt {

class StateLock {
 public:
  // Waits until the state is free. A thread that works for a running model never waits: it gets an
  // error, since it may hold the lock itself. `limit.cancelled` (may be null): call Wake after
  // setting it. A writer that waits goes before readers that come later.
  Status Enter(bool write, const WaitLimit& limit);
  void Leave(bool write);
  void Wake();

  // Leaves at the end of the scope.
  class Hold {
   public:
    Hold() = default;
    Hold(StateLock* lock, bool write) : lock_(lock), write_(write) {}
    Hold(Hold&& other) noexcept
        : lock_(std::exchange(other.lock_, nullptr)), write_(other.write_) {}
    Hold& operator=(Hold&&) = delete;
    ~Hold() {
      if (lock_ != nullptr) lock_->Leave(write_);
    }

   private:
    StateLock* lock_ = nullptr;
    bool write_ = false;
  };

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  size_t readers_ = 0, waiting_writers_ = 0;
  bool writer_ = false;
};

}  // namespace msrt
