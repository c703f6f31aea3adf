// What one run may do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msrt {

struct RunOptions {
  int64_t deadline_nanos = 0;  // on the environment's clock; 0: none
  bool profile = false;
  // Graphs that call each other: how often one of them may be active at once (how deep it may call
  // itself other than as its last step), and how many calls and iterations there may be in all (0:
  // no limit). What frames take counts against the session's cap.
  size_t max_depth = 100'000;
  uint64_t max_calls = 0;
};

}  // namespace msrt
