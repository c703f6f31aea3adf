#include "tools/msconvert/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace msrt {
namespace {

constexpr uintmax_t kLargeFile = 200'000'000;
constexpr int kStepInLines = 10;  // percent

}  // namespace

Progress::Progress(bool on) : on_(on), terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::At(std::string_view stage, double part) {
  if (!on_) return;
  const int percent = static_cast<int>(100 * std::clamp(part, 0.0, 1.0));
  const bool next = stage != stage_;
  if (!next && percent < shown_ + (terminal_ || percent == 100 ? 1 : kStepInLines)) return;
  stage_ = stage;
  shown_ = percent;
  std::fprintf(stderr, terminal_ ? "\r\x1b[Kmsconvert: %s %d %%" : "msconvert: %s %d %%\n",
               stage_.c_str(), percent);
  std::fflush(stderr);
}

void Progress::Clear() {
  if (on_ && terminal_ && shown_ >= 0) std::fprintf(stderr, "\r\x1b[K");
  shown_ = -1;
  stage_.clear();
}

bool WantsProgress(const std::string& path) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  return !error && bytes > kLargeFile && isatty(STDERR_FILENO) == 1;
}

}  // namespace msrt
