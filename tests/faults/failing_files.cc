#include "tests/faults/failing_files.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace {

using msrt::testing::FileFailure;

std::atomic<int64_t> calls_left{-1};  // until one fails; negative: none fails
std::atomic<FileFailure> failure{FileFailure::kOnce};
std::atomic<bool> has_failed{false}, writes_fail{false};

bool MustFail() {
  if (has_failed && failure == FileFailure::kForGood) return true;
  if (calls_left < 0 || calls_left.fetch_sub(1) != 1) return false;
  return has_failed = true;
}

template <typename Result>
Result Failed() {
  errno = ENOSPC;
  return Result{-1};
}

}  // namespace

namespace msrt::testing {

void FailFiles(int64_t n, FileFailure how) {
  has_failed = writes_fail = false;
  failure = how;
  calls_left = n;
}

bool StopFailingFiles() {
  calls_left = -1;
  writes_fail = false;
  return has_failed.exchange(false);
}

}  // namespace msrt::testing

// The program's own definitions come before those of the C library.
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : mode_t{0};
  va_end(arguments);
  if (MustFail()) return Failed<int>();
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int file, const void* data, size_t bytes) {
  if (writes_fail) return Failed<ssize_t>();
  if (MustFail()) {
    if (failure != FileFailure::kShort || bytes < 2) return Failed<ssize_t>();
    writes_fail = true;
    bytes /= 2;
  }
  return syscall(SYS_write, file, data, bytes);
}

int fsync(int file) {
  if (MustFail()) return Failed<int>();
  return static_cast<int>(syscall(SYS_fsync, file));
}

int close(int file) {
  const bool fails = MustFail();  // the descriptor is gone in any case
  const int result = static_cast<int>(syscall(SYS_close, file));
  return fails ? Failed<int>() : result;
}

int rename(const char* from, const char* to) noexcept {
  if (MustFail()) return Failed<int>();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int unlink(const char* path) noexcept {
  if (has_failed && failure == FileFailure::kForGood) return Failed<int>();
  return static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

}  // extern "C"
