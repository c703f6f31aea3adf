#include "tools/msrun/launch_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

namespace msrt {
namespace {

constexpr size_t kFullBytes = size_t{4} << 20;

bool WriteAll(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(to, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd ready{to, POLLOUT, 0};
      (void)poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

// Shared with the thread, which may be in a write that does not return when the launcher ends.
struct LaunchWriter::State {
  int to;
  std::function<void()> changed;
  mutable std::mutex mutex;
  std::condition_variable wake;
  std::string waiting;
  size_t writing_bytes = 0;
  bool failed = false, stop = false;

  bool is_full() const { return waiting.size() + writing_bytes > kFullBytes; }
};

LaunchWriter::LaunchWriter(int to, std::function<void()> changed)
    : state_(std::make_shared<State>()) {
  state_->to = to;
  state_->changed = std::move(changed);
  std::thread([state = state_] { Run(state); }).detach();
}

LaunchWriter::~LaunchWriter() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->wake.notify_one();
}

void LaunchWriter::Run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->wake.wait(lock, [&] { return state->stop || !state->waiting.empty(); });
    if (state->stop) return;
    const bool was_full = state->is_full();
    std::string text;
    text.swap(state->waiting);
    state->writing_bytes = text.size();
    lock.unlock();
    const bool written = WriteAll(state->to, text);
    lock.lock();
    state->writing_bytes = 0;
    if (!written) {
      state->failed = true;
      state->waiting.clear();
    }
    if (!written || was_full || state->waiting.empty()) state->changed();
  }
}

int LaunchWriter::descriptor() const { return state_->to; }

void LaunchWriter::Write(std::string text) {
  const std::lock_guard lock(state_->mutex);
  if (state_->failed || text.empty()) return;
  if (state_->waiting.empty()) state_->waiting = std::move(text);
  else state_->waiting += text;
  state_->wake.notify_one();
}

bool LaunchWriter::full() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_full();
}

bool LaunchWriter::idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failed || (state_->waiting.empty() && state_->writing_bytes == 0);
}

bool LaunchWriter::failed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failed;
}

}  // namespace msrt
