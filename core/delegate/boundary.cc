#include "core/delegate/boundary.h"

namespace msrt {
namespace {

thread_local std::string failure_text;

// Returns the stored text and clears it; empty if there is none.
std::string TakeFailureText() {
  if (!boundary_internal::has_failure_text) return {};
  boundary_internal::has_failure_text = false;
  return std::move(failure_text);
}

std::string DefaultFailureText(msrt_status code) {
  return code == MSRT_OUT_OF_MEMORY ? "out of memory, without saying how much"
                                    : StrCat("failed without saying why (status ", code, ")");
}

// The application did not cancel the run, and a bug in a plugin is not an internal error of this
// library.
Code CallbackCode(msrt_status code) {
  if (code < 0 || code > static_cast<msrt_status>(Code::kInternal)) return Code::kDelegate;
  const auto known = static_cast<Code>(code);
  const bool foreign =
      known == Code::kCancelled || known == Code::kDeadlineExceeded || known == Code::kInternal;
  return foreign ? Code::kDelegate : known;
}

Code DelegateCode(msrt_status code) {
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

constinit thread_local bool boundary_internal::has_failure_text = false;

void SetFailureText(const char* message) noexcept {
  try {
    failure_text = message == nullptr ? "" : message;
  } catch (const std::bad_alloc&) {
    failure_text.clear();
  }
  boundary_internal::has_failure_text = true;
}

Status boundary_internal::FailureOfDelegate(msrt_status code, std::string_view kind,
                                            std::string_view name) {
  std::string text = TakeFailureText();
  if (text.empty()) text = StrCat(kind, " ", name, ": ", DefaultFailureText(code));
  return Status(DelegateCode(code), std::move(text));
}

Status boundary_internal::FailureOfCallback(msrt_status code) {
  std::string text = TakeFailureText();
  return Status(CallbackCode(code), text.empty() ? DefaultFailureText(code) : std::move(text));
}

}  // namespace msrt
