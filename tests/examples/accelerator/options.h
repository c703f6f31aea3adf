// Options of the accelerator: "key=value,key=value", all optional.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/examples/accelerator/failure.h"

namespace accelerator {

struct Options {
  // Number of devices: "accelerator", or "accelerator0", "accelerator1" and so on if there are
  // several. Every candidate is offered for each of them.
  size_t devices = 1;
  // Optional functions of the devices; 0: they lack them.
  bool peers = true, stream_waits = true, pinned = true, converts = true, captures = true;
  bool channels_last = false;  // offers Relu, Neg and Exp of rank 4 in channels last only
  uint64_t seed = 1;           // of delays and of failures with a probability
  // Queued work waits latency_us, and a random time up to delay_us, before it begins.
  double latency_us = 0, delay_us = 0;
  size_t capacity = SIZE_MAX;            // bytes of memory of each device
  std::vector<std::string> unsupported;  // ops that it refuses: "Conv+Pad"
  std::vector<std::string> owns;         // control flow that it takes whole: "If+Loop+While"
  size_t chain = 4;                      // maximum nodes of a candidate
  double speed = 10;                     // claimed speed relative to plain loops
  double launch_us = 10;                 // claimed cost of a launch
  // Claimed cost of a copy; copy_gbs = 0: none, the host measures it.
  double copy_us = 0, copy_gbs = 0;
  double pretend = 0;  // not 0: kernels compute nothing and take this many times their estimate
  double compile_fails = 0, run_fails = 0;  // probability for each
  // The n-th such call fails, counted from 0; -1: none. dies_after: all operations fail after this
  // many of any kind.
  int64_t run_fails_at = -1, copy_fails_at = -1, allocate_fails_at = -1, dies_after = -1;
  bool forms = false;  // kernels of one node compute with packed forms of parameters
  // New blocks may be where freed ones of their size were, as on a real device.
  bool reuse_addresses = false;
  bool strides = true;      // pieces may be parts of larger tensors
  bool fails_late = false;  // runs and copies fail in the stream, after the call returned success
};

Failure ParseOptions(const char* text, Options* out);

}  // namespace accelerator
