#include "core/delegate/boundary.h"

namespace msrt {
namespace {

thread_local std::string failure;

// The kept text, once; empty where there is none.
std::string TakeFailureText() {
  if (!door_internal::failure_kept) return {};
  door_internal::failure_kept = false;
  return std::move(failure);
}

std::string WithoutWords(msrt_status code) {
  return code == MSRT_OUT_OF_MEMORY ? "out of memory, of which it did not say how much"
                                    : StrCat("failed without saying why (status ", code, ")");
}

// Nobody asked for a run to stop, and a bug of theirs is none of ours.
Code MeantByRule(msrt_status code) {
  if (code < 0 || code > static_cast<msrt_status>(Code::kInternal)) return Code::kDelegate;
  const auto known = static_cast<Code>(code);
  const bool foreign =
      known == Code::kCancelled || known == Code::kDeadlineExceeded || known == Code::kInternal;
  return foreign ? Code::kDelegate : known;
}

Code MeantByDelegate(msrt_status code) {
  switch (code) {
    case MSRT_INVALID_ARGUMENT:
    case MSRT_INVALID_MODEL:
    case MSRT_OUT_OF_MEMORY:
    case MSRT_LIMIT_EXCEEDED:
      return static_cast<Code>(code);
    default:
      return Code::kDelegate;
  }
}

}  // namespace

constinit thread_local bool door_internal::failure_kept = false;

void KeepFailure(const char* message) noexcept {
  try {
    failure = message == nullptr ? "" : message;
  } catch (const std::bad_alloc&) {
    failure.clear();
  }
  door_internal::failure_kept = true;
}

Status door_internal::FailureOfDelegate(msrt_status code, std::string_view delegate) {
  std::string text = TakeFailureText();
  if (text.empty()) text = StrCat("delegate ", delegate, ": ", WithoutWords(code));
  return Status(MeantByDelegate(code), std::move(text));
}

Status door_internal::FailureOfRule(msrt_status code) {
  std::string text = TakeFailureText();
  return Status(MeantByRule(code), text.empty() ? WithoutWords(code) : std::move(text));
}

}  // namespace msrt
