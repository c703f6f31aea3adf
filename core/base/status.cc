#include "core/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace msrt {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kInvalidModel:
      return "invalid model";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kNotFound:
      return "not found";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kLimitExceeded:
      return "limit exceeded";
    case Code::kCancelled:
      return "cancelled";
    case Code::kDeadlineExceeded:
      return "deadline exceeded";
    case Code::kIo:
      return "input/output error";
    case Code::kDelegate:
      return "delegate failed";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown status";
}

Status::Status(Code code, std::string message) {
  if (code != Code::kOk) rep_ = RepPtr(new Rep{code, std::move(message), {}});
}

Status::Status(const Status& other) : rep_(other.rep_ ? new Rep(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = RepPtr(other.rep_ ? new Rep(*other.rep_) : nullptr);
  return *this;
}

void Status::FreeRep::operator()(Rep* rep) const noexcept { delete rep; }

const std::string& Status::message() const {
  static const std::string empty;
  return rep_ ? rep_->message : empty;
}

const std::vector<std::pair<std::string, std::string>>& Status::details() const {
  static const std::vector<std::pair<std::string, std::string>> empty;
  return rep_ ? rep_->details : empty;
}

Status&& Status::With(std::string key, std::string value) && {
  if (rep_) rep_->details.emplace_back(std::move(key), std::move(value));
  return std::move(*this);
}

Status&& Status::Within(std::string_view context) && {
  if (rep_) rep_->message = StrCat(context, ": ", rep_->message);
  return std::move(*this);
}

Status OutOfMemory(uint64_t bytes, std::string_view what) {
  if (bytes == 0)
    return Status(Code::kOutOfMemory, StrCat(what, ": the process has no memory left"));
  return Status(Code::kOutOfMemory, StrCat(what, ": no memory for ", bytes, " bytes"));
}

void CheckFailed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "msrt: internal check failed at %s:%d: %s\n", file, line, what);
  std::abort();
}

}  // namespace msrt
