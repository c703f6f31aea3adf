#include "tests/examples/accelerator/stream.h"

#include <sys/prctl.h>

#include <chrono>
#include <new>

#include "tests/examples/accelerator/misuse.h"

namespace accelerator {

Failure Progress::WaitFor(uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= count; });
  return failure_;
}

Stream::Stream(Faults* faults)
    : faults_(faults), id_(TheOrder().AddStream()), thread_([this] { Loop(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(progress_->mutex_);
    const uint64_t left = progress_->enqueued_ - progress_->done_;
    if (left != 0)
      CountMisuse("a stream is destroyed while " + std::to_string(left) +
                  " pieces of work are in it");
    ending_ = true;
  }
  progress_->changed_.notify_all();
  thread_.join();
  TheOrder().RemoveStream(id_);
}

Failure Stream::Do(Launch launch) {
  if (!capturing()) return launch(this);
  recording_->launches.push_back(std::move(launch));
  return {};
}

void Stream::Enqueue(Work work) {
  std::lock_guard lock(progress_->mutex_);
  queue_.push_back(std::move(work));
  ++progress_->enqueued_;
  progress_->changed_.notify_all();
}

void Stream::Record(Event* event) {
  if (capturing()) CountMisuse("an event is recorded in a stream that captures");
  std::lock_guard lock(progress_->mutex_);
  *event = {progress_, progress_->enqueued_, TheOrder().At(id_)};
}

void Stream::Wait(const Event& event) {
  if (capturing()) CountMisuse("a stream that captures is made to wait");
  if (event.progress == nullptr) return;
  TheOrder().StreamWaits(id_, event.clock);
  if (event.progress == progress_) return;
  (void)NextPiece();
  Enqueue([progress = event.progress, count = event.count] { return progress->WaitFor(count); });
}

Failure Stream::Synchronize() {
  if (capturing()) CountMisuse("a stream that captures is synchronized");
  const Clock clock = TheOrder().At(id_);
  std::unique_lock lock(progress_->mutex_);
  progress_->changed_.wait(lock, [&] { return progress_->done_ == progress_->enqueued_; });
  TheOrder().HostWaits(clock);
  return std::exchange(progress_->failure_, {});
}

Failure Stream::BeginCapture() {
  if (capturing()) return Failed("the stream captures already");
  recording_ = std::make_unique<Recording>();
  return {};
}

Failure Stream::EndCapture(std::unique_ptr<Recording>* out) {
  if (!capturing()) return Failed("the stream does not capture");
  *out = std::move(recording_);
  return {};
}

void Stream::Loop() {
  prctl(PR_SET_TIMERSLACK,
        1);  // the default of 50 us would be longer than many pretended kernels
  std::unique_lock lock(progress_->mutex_);
  for (;;) {
    progress_->changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    Failure failure = progress_->failure_;
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
    progress_->failure_ = std::move(failure);
    ++progress_->done_;
    progress_->changed_.notify_all();
  }
}

}  // namespace accelerator
