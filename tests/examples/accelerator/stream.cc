#include "tests/examples/accelerator/stream.h"

#include <sys/prctl.h>

#include <chrono>
#include <new>

#include "tests/examples/accelerator/misuse.h"

namespace accelerator {

Stream::Stream(Faults* faults) : faults_(faults), thread_([this] { Loop(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    if (done_ != enqueued_)
      CountMisuse("a stream is destroyed while " + std::to_string(enqueued_ - done_) +
                  " pieces of work are in it");
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

uint64_t Stream::Enqueue(Work work) {
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
  return ++enqueued_;
}

uint64_t Stream::enqueued() const {
  std::lock_guard lock(mutex_);
  return enqueued_;
}

Failure Stream::WaitFor(uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= count; });
  return failure_;
}

Failure Stream::Synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ == enqueued_; });
  return std::exchange(failure_, {});
}

void Stream::Loop() {
  prctl(PR_SET_TIMERSLACK,
        1);  // the default of 50 us would be longer than many pretended kernels
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    Failure failure = failure_;
    lock.unlock();
    if (const double micros = faults_->NextDelayMicros(); micros > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(micros));
    }
    try {
      if (failure.ok()) failure = work();
    } catch (const std::bad_alloc&) {
      failure = {MSRT_OUT_OF_MEMORY, "the accelerator's host is out of memory"};
    }
    work = nullptr;  // releases its resources before completion is signalled
    lock.lock();
    queue_.pop_front();
    failure_ = std::move(failure);
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace accelerator
