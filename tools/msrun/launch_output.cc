#include "tools/msrun/launch_output.h"

#include <unistd.h>

#include <cstdlib>

#include "core/base/str_cat.h"

namespace msrt {
namespace {

// A longer line is shown in parts, so that memory is bounded.
constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr size_t kMaxLastLines = 10;
constexpr size_t kMaxLastLineBytes = 1000;

}  // namespace

LabelledOutput::LabelledOutput(int rank, LaunchWriter* to)
    : to_(to), label_(StrCat("[", rank, "] ")) {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  if (!isatty(to->descriptor()) || std::getenv("NO_COLOR") != nullptr || dumb) return;
  label_ = StrCat("\x1B[", 31 + rank % 6, "m[", rank, "]\x1B[0m ");
}

void LabelledOutput::TakeLine(std::string_view line, std::string* out) {
  StrAppend(out, label_, line, "\n");
  last_lines_.emplace_back(line.substr(0, kMaxLastLineBytes));
  if (last_lines_.size() > kMaxLastLines) last_lines_.pop_front();
}

void LabelledOutput::Append(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      partial_.append(bytes);
      if (partial_.size() < kMaxLineBytes) break;
      TakeLine(partial_, &out);
      partial_.clear();
      break;
    }
    partial_.append(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    TakeLine(partial_, &out);
    partial_.clear();
  }
  to_->Write(std::move(out));
}

void LabelledOutput::Finish() {
  if (partial_.empty()) return;
  std::string out;
  TakeLine(partial_, &out);
  partial_.clear();
  to_->Write(std::move(out));
}

}  // namespace msrt
