// What the application may ask of the accelerator: "key=value,key=value", all optional.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/examples/accelerator/failure.h"

namespace accelerator {

struct Options {
  uint64_t seed = 1;  // of delays and of failures with a probability
  double latency_us = 0,
         delay_us = 0;  // queued work waits the first, and up to the second more, before it begins
  size_t capacity = SIZE_MAX;            // bytes of memory
  std::vector<std::string> unsupported;  // ops that it refuses: "Conv+Pad"
  std::vector<std::string> owns;         // control flow that it takes whole: "If+Loop+While"
  size_t chain = 4;                      // the most nodes of a candidate
  double speed = 10;                     // how much faster than plain loops it says that it is
  double launch_us = 10;                 // what it says that coming back to it costs
  double copy_us = 0,
         copy_gbs = 0;  // what it says that a copy costs; copy_gbs = 0: nothing, the host measures
  double pretend = 0;   // not 0: kernels compute nothing and last this many times their estimate
  double compile_fails = 0, run_fails = 0;  // probability for each
  // The n-th of all such calls fails, from 0; -1: none does. After that many operations of any kind
  // every one fails.
  int64_t run_fails_at = -1, copy_fails_at = -1, allocate_fails_at = -1, dies_after = -1;
  bool fails_late =
      false;  // runs and copies fail in the stream, after the call said that all is well
};

Failure ParseOptions(const char* text, Options* out);

}  // namespace accelerator
