// A queue of a session that a host thread executes, for work that mostly waits: communication,
// prefetch. It begins when work is first enqueued and sleeps between.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/run/frame.h"
#include "core/run/run_context.h"

namespace msrt {

class ThreadQueue {
 public:
  explicit ThreadQueue(RunContext* context) : context_(*context) {}
  ~ThreadQueue();
  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;

  // Runs the kernel of the step in the thread. `pointers` are its inputs, then its outputs. The
  // step lives until the host has waited for it. After a failure, later work is dropped.
  Status Run(const Frame& frame, const BoundStep& step, std::span<void* const> pointers,
             void* workspace, RunFailure on_failure);

  // Runs any work in the thread, which adds its communication to the totals of the run. What it
  // refers to lives until the host has waited for it.
  using Work = std::function<Status(ExchangeTotals*)>;
  void Enqueue(Work work, RunFailure on_failure);

  void Record(uint32_t event);
  // The host waits. Returns the first failure since the last Synchronize, and records it in the
  // context.
  Status Wait(uint32_t event);
  Status Synchronize();

 private:
  void Loop();
  Status WaitUntil(uint64_t count);

  RunContext& context_;
  std::unique_ptr<const Host> host_;  // without threads: tasks run on this one
  std::vector<uint64_t> events_;      // by number: how many pieces of work come before
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<Work, RunFailure>> queue_;  // the first is being done
  uint64_t enqueued_ = 0, done_ = 0;
  Status status_;          // the first failure
  RunFailure failure_;     // of that work
  ExchangeTotals totals_;  // since the last Synchronize
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace msrt
