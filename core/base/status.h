// Errors as values. Every stage of the runtime returns Status or Result<T>; nothing throws but
// std::bad_alloc, which the C API and each worker's entry catch. A message names the object, the
// problem and the fix:
//   node 17 'conv1' (Conv): strides[0] = 0, must be at least 1
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/str_cat.h"

namespace msrt {

// The numbers are part of the C ABI (msrt_status): append, never renumber.
enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument = 1,   // the caller passed something wrong; the same call can never succeed
  kInvalidModel = 2,      // a model's bytes are wrong (kUnsupported: right, but not for this build)
  kUnsupported = 3,       // well-formed, but neither a delegate nor this version can do it
  kNotFound = 4,          // a named thing (input, file, delegate) does not exist
  kOutOfMemory = 5,       // the allocator failed (kLimitExceeded: our own limit came before it)
  kLimitExceeded = 6,     // a configured limit (memory cap, depth, count) would be exceeded
  kCancelled = 7,         // the run was cancelled
  kDeadlineExceeded = 8,  // the run's own deadline passed
  kIo = 9,                // the operating system refused a read, write or map
  kDelegate = 10,         // a delegate failed in compile or run; another may succeed
  kInternal = 11,         // our own bug; please report
};

std::string_view CodeName(Code code);

// OK is a null pointer, so passing success along costs a register. Details are key/value facts
// (node, op, shapes, offset) that msrt_error_json shows; the message alone must suffice for a
// person.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return rep_ == nullptr; }
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  const std::string& message() const;
  const std::vector<std::pair<std::string, std::string>>& details() const;

  // Adds a fact for msrt_error_json. No effect on OK.
  Status&& With(std::string key, std::string value) &&;
  // Puts "context: " before the message, from inside to outside. No effect on OK.
  Status&& Within(std::string_view context) &&;

 private:
  struct Rep {
    Code code;
    std::string message;
    std::vector<std::pair<std::string, std::string>> details;
  };
  // Out of line: a status is destroyed in every call of every step, and only errors have a Rep.
  struct FreeRep {
    void operator()(Rep* rep) const noexcept;
  };
  using RepPtr = std::unique_ptr<Rep, FreeRep>;
  RepPtr rep_;
};

inline Status OkStatus() { return Status(); }

template <typename... Parts>
Status MakeStatus(Code code, const Parts&... parts) {
  return Status(code, StrCat(parts...));
}
template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return Status(Code::kInvalidArgument, StrCat(parts...));
}
template <typename... Parts>
Status InvalidModel(const Parts&... parts) {
  return Status(Code::kInvalidModel, StrCat(parts...));
}
template <typename... Parts>
Status Unsupported(const Parts&... parts) {
  return Status(Code::kUnsupported, StrCat(parts...));
}
template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return Status(Code::kNotFound, StrCat(parts...));
}
template <typename... Parts>
Status LimitExceeded(const Parts&... parts) {
  return Status(Code::kLimitExceeded, StrCat(parts...));
}
template <typename... Parts>
Status IoError(const Parts&... parts) {
  return Status(Code::kIo, StrCat(parts...));
}
template <typename... Parts>
Status DelegateError(const Parts&... parts) {
  return Status(Code::kDelegate, StrCat(parts...));
}
template <typename... Parts>
Status InternalError(const Parts&... parts) {
  return Status(Code::kInternal, StrCat(parts...));
}
// `bytes` is 0 for a small allocation whose size is not known.
Status OutOfMemory(uint64_t bytes, std::string_view what);

// A value or the reason why there is none. Reading the value of a failed Result is our own bug and
// stops the process.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(Status status)
      : status_(std::move(status)) {}  // NOLINT: implicit by design; status must not be OK
  Result(T value) : has_value_(true) { new (&storage_) T(std::move(value)); }  // NOLINT
  Result(Result&& other) noexcept
      : status_(std::move(other.status_)), has_value_(other.has_value_) {
    if (has_value_) new (&storage_) T(std::move(other.ref()));
  }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      this->~Result();
      new (this) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (has_value_) ref().~T();
  }

  bool ok() const { return has_value_; }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }
  T& operator*() & { return ref(); }
  const T& operator*() const& { return const_cast<Result*>(this)->ref(); }
  T&& operator*() && { return std::move(ref()); }
  T* operator->() { return &ref(); }
  const T* operator->() const { return &const_cast<Result*>(this)->ref(); }

 private:
  T& ref() { return *std::launder(reinterpret_cast<T*>(&storage_)); }
  Status status_;
  alignas(T) unsigned char storage_[sizeof(T)];
  bool has_value_ = false;
};

// Stops the process with file, line and reason: only for broken internal invariants, never
// reachable from input.
[[noreturn]] void CheckFailed(const char* file, int line, const char* what);

}  // namespace msrt

#define MSRT_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) ::msrt::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

#define MSRT_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::msrt::Status msrt_status_ = (expression);  \
    if (!msrt_status_.ok()) return msrt_status_; \
  } while (false)

#define MSRT_CONCAT_INNER(a, b) a##b
#define MSRT_CONCAT(a, b) MSRT_CONCAT_INNER(a, b)
#define MSRT_ASSIGN_OR_RETURN(lhs, expression) \
  MSRT_ASSIGN_OR_RETURN_INNER(MSRT_CONCAT(msrt_result_, __LINE__), lhs, expression)
#define MSRT_ASSIGN_OR_RETURN_INNER(result, lhs, expression) \
  auto result = (expression);                                \
  if (!result.ok()) return std::move(result).status();       \
  lhs = *std::move(result)
