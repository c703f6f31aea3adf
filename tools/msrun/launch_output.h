// The output of ranks, line by line: each line has its rank in front, and lines of different ranks
// never mix.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "tools/msrun/launch_writer.h"

namespace msrt {

// One stream of one rank.
class LabelledOutput {
 public:
  // In colour if `to`, which outlives this object, writes to a terminal.
  LabelledOutput(int rank, LaunchWriter* to);

  // Writes the lines that have become complete.
  void Append(std::string_view bytes);
  // Writes the rest, which did not end in a new line.
  void Finish();
  LaunchWriter& writer() { return *to_; }
  // The last lines, without the label.
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  void TakeLine(std::string_view line, std::string* out);
  LaunchWriter* to_;
  std::string label_, partial_;
  std::deque<std::string> last_lines_;
};

}  // namespace msrt
