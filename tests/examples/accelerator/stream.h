// A queue of work with its own thread that does it in order, each piece after a random delay.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/examples/accelerator/faults.h"

namespace accelerator {

class Stream {
 public:
  using Work = std::function<Failure()>;

  explicit Stream(Faults* faults);
  // The stream must be idle; work that is not done yet is counted as misuse, then done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Returns the number of pieces enqueued so far, as a point to wait for.
  uint64_t Enqueue(Work work);
  uint64_t enqueued() const;
  // Waits until that many pieces are done. Returns the first failure since the last Synchronize, if
  // any: work after it is dropped.
  Failure WaitFor(uint64_t count);
  Failure Synchronize();

 private:
  void Loop();

  Faults* const faults_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;  // the first is being done
  uint64_t enqueued_ = 0, done_ = 0;
  Failure failure_;
  bool ending_ = false;
  std::thread thread_;
};

// A point in a stream.
struct Event {
  Stream* stream = nullptr;  // null: never recorded, so there is nothing to wait for
  uint64_t count = 0;
};

}  // namespace accelerator
