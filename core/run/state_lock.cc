#include "core/run/state_lock.h"

namespace msrt {

Status StateLock::Enter(bool write, const WaitLimit& limit) {
  std::unique_lock lock(mutex_);
  const auto is_free = [&] { return !writer_ && (write ? readers_ == 0 : waiting_writers_ == 0); };
  if (!is_free() && InParallelRegion::here()) {
    return InvalidArgument(
        "another run uses the shared state, and a call from inside a run cannot wait for it");
  }
  if (write) ++waiting_writers_;
  const bool entered = AwaitTurn(lock, turn_, limit, is_free);
  if (write) --waiting_writers_;
  if (!entered) {
    turn_.notify_all();  // readers may have waited for this writer
    const bool cancelled = limit.cancelled != nullptr && limit.cancelled->load();
    return cancelled ? MakeStatus(Code::kCancelled, "the run was cancelled")
                     : MakeStatus(Code::kDeadlineExceeded,
                                  "the run passed its deadline while it waited for another session "
                                  "that uses the shared state");
  }
  if (write) writer_ = true;
  else ++readers_;
  return OkStatus();
}

void StateLock::Leave(bool write) {
  {
    const std::lock_guard lock(mutex_);
    if (write) writer_ = false;
    else --readers_;
  }
  turn_.notify_all();
}

void StateLock::Wake() {
  { const std::lock_guard lock(mutex_); }
  turn_.notify_all();
}

}  // namespace msrt
