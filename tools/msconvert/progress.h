// How far a conversion is, for people who wait: "reading 42 %" on standard error, rewritten in
// place on a terminal, a line for each tenth elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace msrt {

class Progress {
 public:
  // Off, it costs nothing and says nothing.
  explicit Progress(bool on);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool on() const { return on_; }
  // `part` of the stage is done, 0 to 1.
  void At(std::string_view stage, double part);
  // Takes the line off a terminal, so that other text can follow.
  void Clear();

 private:
  const bool on_, terminal_;
  std::string stage_;
  int shown_ = -1;  // percent
};

// Whether standard error is a terminal and the file is so large that somebody will wait for it.
bool WantsProgress(const std::string& path);

}  // namespace msrt
