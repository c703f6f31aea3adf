#include "core/comm/gloo/store_abort.h"

#include <charconv>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

constexpr std::chrono::milliseconds kPublishTime{500};

}  // namespace

std::string TextOfReason(const Status& reason) {
  constexpr size_t kMaxReasonBytes = 4096;
  return StrCat(static_cast<int>(reason.code()), " ",
                std::string_view(reason.message()).substr(0, kMaxReasonBytes));
}

Status ReasonOfText(std::string_view text) {
  int code = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, code);
  const bool is_error = error == std::errc() && code > 0 &&
                        code <= static_cast<int>(Code::kInternal) && rest != end && *rest == ' ';
  if (!is_error) return Status(Code::kCancelled, "a rank aborted the job for an unreadable reason");
  return Status(static_cast<Code>(code), std::string(rest + 1, end));
}

StoreAbort::StoreAbort(Store* store, std::string key)
    : store_(store), key_(std::move(key)), thread_([this] { Listen(); }) {}

StoreAbort::~StoreAbort() {
  closing_.store(true);
  thread_.join();
}

// A store that fails ends the thread: whoever provides the store also reports that it has gone, and
// lost connections still end all waits.
void StoreAbort::Listen() {
  WaitLimit limit;
  limit.cancelled = &closing_;
  const Result<std::string> text = store_->Get(key_, limit);
  if (!text.ok()) return;
  const std::lock_guard lock(mutex_);
  reason_ = ReasonOfText(*text);
  for (AbortListener* listener : listeners_) listener->HearAbort(reason_);
}

void StoreAbort::Add(AbortListener* listener) {
  const std::lock_guard lock(mutex_);
  listeners_.push_back(listener);
  if (!reason_.ok()) listener->HearAbort(reason_);
}

void StoreAbort::Remove(AbortListener* listener) {
  const std::lock_guard lock(mutex_);
  std::erase(listeners_, listener);
}

// The store refuses the reasons of later ranks. A store that does not answer must not keep the rank
// from closing its connections, by which its peers learn of the abort too.
void StoreAbort::Publish(const Status& reason) {
  WaitLimit limit;
  limit.until = std::chrono::steady_clock::now() + kPublishTime;
  (void)store_->Set(key_, TextOfReason(reason), limit);
}

}  // namespace msrt
