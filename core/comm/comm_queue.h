// The operations of one communicator, in the order in which they were started. Each runs to its end
// before the next begins, apart from the caller: on the queue's own thread, or on the thread of a
// caller that waits without a limit, which then has nothing else to do.
//
// A caller that starts an operation and waits at once should not pay for waking a thread. The queue
// learns from its callers: while they wait at once, its thread only looks in every now and then;
// once an operation was left alone, the thread is woken at each start. An idle queue sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/parallel_for.h"
#include "core/base/status.h"

namespace msrt {

class CommTask {
 public:
  explicit CommTask(std::function<Status()> run) : run_(std::move(run)) {}
  bool done() const { return done_.load(std::memory_order_acquire); }

 private:
  friend class CommQueue;
  std::function<Status()> run_;
  std::chrono::steady_clock::time_point started_;
  Status status_;  // set before done_
  std::atomic<bool> done_{false};
};

class CommQueue {
 public:
  CommQueue() = default;
  ~CommQueue();  // runs what is left
  CommQueue(const CommQueue&) = delete;
  CommQueue& operator=(const CommQueue&) = delete;

  std::shared_ptr<CommTask> Push(std::function<Status()> run);
  // The task's status; kCancelled or kDeadlineExceeded, without text, if the limit expires first.
  Status Wait(CommTask& task, const WaitLimit& limit);

 private:
  enum class Sleep { kNone, kNap, kDeep };

  void ThreadMain();
  void RunFront(std::unique_lock<std::mutex>& lock);
  bool ThreadShouldRun() const;
  void WakeThread(bool at_once);
  void LearnFromWait(const CommTask& task);

  std::mutex mutex_;
  std::condition_variable wake_;  // the queue's thread
  std::condition_variable done_;  // callers
  std::deque<std::shared_ptr<CommTask>> tasks_;
  bool running_ = false;  // some thread runs the front task
  bool stop_ = false;
  bool urgent_ = false;      // a caller waits with a limit: the thread must run the tasks
  bool wake_early_ = false;  // learnt: callers do not wait at once
  int prompt_waits_ = 0;
  uint64_t pushes_ = 0;
  Sleep sleep_ = Sleep::kNone;
  std::thread thread_;
};

}  // namespace msrt
