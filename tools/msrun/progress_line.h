// The progress of a long run on standard error: on a terminal one line that is replaced, elsewhere
// (a file, 'msrun launch', mpirun) a line from time to time.
#pragma once

#include <string>

#include "core/base/clock.h"

namespace CLI {
class App;
}

namespace msrt {

// Adds --progress.
void AddProgressOption(CLI::App* app, double* seconds);

// Used by one thread.
class ProgressLine {
 public:
  // `seconds` between two lines where standard error is no terminal; 0: none.
  ProgressLine(bool shown, double seconds);
  ~ProgressLine() { Clear(); }

  // Whether a line is due. `last`: the run is complete.
  bool due(bool last = false) const;
  void Show(const std::string& text);
  // Removes the line from the terminal, before anything else is printed.
  void Clear();

 private:
  const bool terminal_;
  const double interval_millis_;  // 0: nothing is shown
  bool drawn_ = false, first_ = true;
  StopWatch since_;
};

}  // namespace msrt
