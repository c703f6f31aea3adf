// A queue of work with its own thread that does it in order, each piece after a random delay.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/examples/accelerator/faults.h"
#include "tests/examples/accelerator/order.h"

namespace accelerator {

class Stream;

// Enqueues one operation: checks its arguments, which are part of it, and adds its work.
using Launch = std::function<Failure(Stream*)>;

// Operations that a stream recorded.
struct Recording {
  std::vector<Launch> launches;
};

// How far a stream is. Outlives it, for events.
class Progress {
 public:
  // Waits until that many pieces are done. Returns the first failure of the stream since the last
  // Synchronize: work after it is dropped.
  Failure WaitFor(uint64_t count);

 private:
  friend class Stream;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t enqueued_ = 0, done_ = 0;
  Failure failure_;
};

// A point in a stream.
struct Event {
  std::shared_ptr<Progress> progress;  // null: never recorded, so there is nothing to wait for
  uint64_t count = 0;
  Clock clock;
};

class Stream {
 public:
  using Work = std::function<Failure()>;

  explicit Stream(Faults* faults);
  // The stream must be idle; work that is not done yet is counted as misuse, then done.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Runs the launch, or records it between BeginCapture and EndCapture.
  Failure Do(Launch launch);
  // Called by launches. The piece that they are about to add, then its work.
  Piece NextPiece() { return TheOrder().Enqueue(id_); }
  void Enqueue(Work work);

  void Record(Event* event);
  // Later work waits; if that of the event failed, this stream fails too.
  void Wait(const Event& event);
  Failure Synchronize();

  Failure BeginCapture();
  Failure EndCapture(std::unique_ptr<Recording>* out);
  bool capturing() const { return recording_ != nullptr; }

 private:
  void Loop();

  Faults* const faults_;
  const uint64_t id_;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::deque<Work> queue_;  // the first is being done
  bool ending_ = false;
  std::unique_ptr<Recording> recording_;
  std::thread thread_;
};

}  // namespace accelerator
