// Options of one run: deadline, profiling, limits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msrt {

struct RunOptions {
  int64_t deadline_nanos = 0;  // on the environment's clock; 0: none
  bool profile = false;
  // Limits on graphs that call each other. max_depth: activations of one graph at once (tail calls
  // do not count). max_calls: calls and iterations in total; 0: no limit. The memory of frames
  // counts against the session's cap.
  size_t max_depth = 100'000;
  uint64_t max_calls = 0;
};

}  // namespace msrt
