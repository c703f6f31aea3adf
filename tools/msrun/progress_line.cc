#include "tools/msrun/progress_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace msrt {
namespace {

constexpr double kTerminalMillis = 200;

}  // namespace

void AddProgressOption(CLI::App* app, double* seconds) {
  constexpr double kMaxSeconds = 86400;
  app->add_option("--progress", *seconds,
                  "seconds between lines of progress where standard error is no terminal, as under "
                  "'msrun launch'; 0: none")
      ->check(CLI::Range(0.0, kMaxSeconds))
      ->capture_default_str();
}

ProgressLine::ProgressLine(bool shown, double seconds)
    : terminal_(isatty(STDERR_FILENO) != 0),
      interval_millis_(!shown      ? 0
                       : terminal_ ? kTerminalMillis
                                   : seconds * 1e3) {}

bool ProgressLine::due(bool last) const {
  if (interval_millis_ == 0) return false;
  if (terminal_ && (first_ || last)) return true;
  return since_.Millis() >= interval_millis_;
}

void ProgressLine::Show(const std::string& text) {
  since_ = StopWatch();
  first_ = false;
  drawn_ = terminal_;
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "%s\n", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::Clear() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace msrt
