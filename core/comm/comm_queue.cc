#include "core/comm/comm_queue.h"

#include "core/base/catch_as_status.h"

namespace msrt {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// How long the thread leaves a new operation to its caller, where callers usually wait at once.
inline constexpr microseconds kPatience(100);
// How often, and how many times in a row, an idle thread looks in before it sleeps.
inline constexpr microseconds kNap(200);
inline constexpr int kMaxNaps = 50;
// A wait that comes so soon after the start is prompt; so many in a row let the thread sleep again.
inline constexpr microseconds kPrompt(20);
inline constexpr int kPromptWaits = 4;
// A flag has no waiters to wake, so waits that can be cancelled look at it this often.
inline constexpr microseconds kCancelPoll(2000);

}  // namespace

CommQueue::~CommQueue() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  wake_.notify_all();
  done_.wait(lock, [&] { return !running_; });
  while (!tasks_.empty() && !thread_.joinable()) RunFront(lock);
  lock.unlock();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<CommTask> CommQueue::Push(std::function<Status()> run) {
  auto task = std::make_shared<CommTask>(std::move(run));
  task->started_ = steady_clock::now();
  const std::lock_guard lock(mutex_);
  tasks_.push_back(task);
  ++pushes_;
  WakeThread(wake_early_);
  return task;
}

// The first start creates the thread.
void CommQueue::WakeThread(bool at_once) {
  if (!thread_.joinable()) thread_ = std::thread([this] { ThreadMain(); });
  else if (sleep_ == Sleep::kDeep || (at_once && sleep_ == Sleep::kNap)) wake_.notify_one();
}

bool CommQueue::ThreadShouldRun() const {
  if (tasks_.empty() || running_) return false;
  return stop_ || urgent_ || wake_early_ ||
         steady_clock::now() - tasks_.front()->started_ >= kPatience;
}

void CommQueue::ThreadMain() {
  std::unique_lock lock(mutex_);
  int naps = 0;
  uint64_t seen = 0;
  while (!(stop_ && tasks_.empty() && !running_)) {
    if (ThreadShouldRun()) {
      if (!urgent_ && !wake_early_ && !stop_) wake_early_ = true, prompt_waits_ = 0;
      RunFront(lock);
      continue;
    }
    naps = pushes_ == seen ? naps + 1 : 0;
    seen = pushes_;
    const bool waits_for_caller = !tasks_.empty() && !running_;
    // Where the thread is woken at each start there is no need to look in.
    if (!waits_for_caller && (naps > kMaxNaps || wake_early_)) {
      sleep_ = Sleep::kDeep;
      wake_.wait(lock);
    } else {
      sleep_ = Sleep::kNap;
      wake_.wait_for(lock, waits_for_caller ? kPatience : kNap);
    }
    sleep_ = Sleep::kNone;
  }
}

void CommQueue::RunFront(std::unique_lock<std::mutex>& lock) {
  running_ = true;
  const std::shared_ptr<CommTask> task = tasks_.front();
  tasks_.pop_front();
  lock.unlock();
  Status status;
  const Status thrown = CatchAsStatus([&] { status = task->run_(); });
  task->run_ = nullptr;
  task->status_ = thrown.ok() ? std::move(status) : thrown;
  lock.lock();
  task->done_.store(true, std::memory_order_release);
  running_ = false;
  if (tasks_.empty()) urgent_ = false;
  else if (sleep_ == Sleep::kDeep) wake_.notify_one();
  done_.notify_all();
}

void CommQueue::LearnFromWait(const CommTask& task) {
  if (steady_clock::now() - task.started_ > kPrompt) prompt_waits_ = 0;
  else if (++prompt_waits_ >= kPromptWaits) wake_early_ = false;
}

Status CommQueue::Wait(CommTask& task, const WaitLimit& limit) {
  if (task.done()) return task.status_;
  const bool limited = limit.cancelled != nullptr || limit.until != steady_clock::time_point::max();
  std::unique_lock lock(mutex_);
  if (!limited && !task.done()) LearnFromWait(task);
  while (!task.done()) {
    if (limited) {
      if (limit.cancelled != nullptr && limit.cancelled->load())
        return Status(Code::kCancelled, "");
      if (limit.expired()) return Status(Code::kDeadlineExceeded, "");
      urgent_ = wake_early_ = true;
      WakeThread(true);
      const auto poll = steady_clock::now() + kCancelPoll;
      done_.wait_until(lock,
                       limit.cancelled != nullptr ? std::min(limit.until, poll) : limit.until);
    } else if (!running_) {
      RunFront(lock);
    } else {
      done_.wait(lock);
    }
  }
  return task.status_;
}

}  // namespace msrt
