// Shows the progress of a conversion: "reading 42 %" on standard error, rewritten in place on a
// terminal, one line for each tenth elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace msrt {

class Progress {
 public:
  // If off, it costs nothing and prints nothing.
  explicit Progress(bool on);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool on() const { return on_; }
  // Shows that `part` of the stage, from 0 to 1, is done.
  void At(std::string_view stage, double part);
  // Erases the line from a terminal, so that other text can follow.
  void Clear();

 private:
  const bool on_, terminal_;
  std::string stage_;
  int shown_ = -1;  // percent
};

// Returns whether standard error is a terminal and the file is large enough to take noticeable
// time.
bool WantsProgress(const std::string& path);

}  // namespace msrt
