#include "core/run/thread_queue.h"

#include <utility>

#include "core/base/catch_as_status.h"
#include "core/run/state_inputs.h"

namespace msrt {
namespace {

// Scratch memory for one kernel.
struct ThreadScratch {
  Allocator* allocator;
  Block block;
  static void* Get(void* self, size_t bytes) {
    auto& scratch = *static_cast<ThreadScratch*>(self);
    if (scratch.block.data() != nullptr && scratch.block.bytes() >= bytes)
      return scratch.block.data();
    auto grown = Block::Make(scratch.allocator, bytes, "scratch memory");
    if (!grown.ok()) return nullptr;
    scratch.block = *std::move(grown);
    return scratch.block.data();
  }
};

}  // namespace

ThreadQueue::~ThreadQueue() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status ThreadQueue::Run(const Frame& frame, const BoundStep& step, std::span<void* const> pointers,
                        void* workspace, RunFailure on_failure) {
  const Environment& env = *context_.model.environment;
  if (host_ == nullptr)
    host_ = std::make_unique<const Host>(CallbackServices{env.allocator, env.log});
  Work work = [&step, &env, host = host_.get(), workspace,
               states =
                   std::make_shared<StateInputs>(&context_.states, &context_.budget, frame, step),
               pointers = std::vector<void*>(pointers.begin(), pointers.end())](ExchangeTotals*) {
    ThreadScratch memory{env.allocator, {}};
    const msrt_scratch scratch{&memory, ThreadScratch::Get};
    msrt_run_args args = MSRT_INIT(msrt_run_args);
    args.host = host->api();
    args.inputs = pointers.data();
    args.input_count = step.input_count;
    args.outputs = pointers.data() + step.input_count;
    args.output_count = pointers.size() - step.input_count;
    args.scratch = &scratch;
    args.workspace = workspace;
    states->AddTo(&args);
    return step.kernel->Run(args);
  };
  Enqueue(std::move(work), std::move(on_failure));
  return OkStatus();
}

void ThreadQueue::Enqueue(Work work, RunFailure on_failure) {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  queue_.emplace_back(std::move(work), std::move(on_failure));
  ++enqueued_;
  changed_.notify_all();
}

void ThreadQueue::Record(uint32_t event) {
  if (events_.size() <= event) events_.resize(event + 1);
  events_[event] = enqueued_;
}

Status ThreadQueue::Wait(uint32_t event) { return WaitUntil(events_[event]); }

Status ThreadQueue::WaitUntil(uint64_t count) {
  std::unique_lock lock(mutex_);
  if (done_ < count) {
    const int64_t begin = MonotonicNanos();
    changed_.wait(lock, [&] { return done_ >= count; });
    context_.exchanges.exposed_nanos += MonotonicNanos() - begin;
  }
  if (status_.ok()) return OkStatus();
  if (MayRunElsewhere(status_.code(), /*on_device=*/false) && context_.failure.delegate.empty())
    context_.failure = failure_;
  return status_;
}

Status ThreadQueue::Synchronize() {
  if (enqueued_ == 0) return OkStatus();  // never used: a run must not pay for the lock
  Status status = WaitUntil(enqueued_);
  std::lock_guard lock(mutex_);
  status_ = OkStatus();
  context_.exchanges.Add(std::exchange(totals_, {}));
  return status;
}

void ThreadQueue::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    if (status_.ok()) {
      const Work& work = queue_.front().first;
      lock.unlock();
      Status status;
      Status thrown = CatchAsStatus([&] { status = work(&totals_); });
      lock.lock();
      status_ = thrown.ok() ? std::move(status) : std::move(thrown);
      if (!status_.ok()) failure_ = std::move(queue_.front().second);
    }
    queue_.pop_front();
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace msrt
