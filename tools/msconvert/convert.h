// The way of a conversion: read, check, optimise, store weights small or packed, write, verify.
#pragma once

#include <string>
#include <vector>

#include "tools/msconvert/zoo.h"

namespace msrt {

struct ConvertArguments {
  std::string input, output;
  std::string optimize = "default", target = "portable", json, weights, checkpoint, verify;  // empty: not asked for
  int64_t weights_block = -1;                                                                // -1: the usual one
  int threads = 0;        // of the runtime that a native file is for; 0: all cores
  double tolerance = -1;  // of the range of each output; -1: the usual one
  std::vector<std::string> disabled, shapes, typical, states, plugins;
  zoo::Options zoo;
  bool quiet = false, check = false, progress = false, keep_unknown = false;
};

// What the process returns; 2 is a wrong command line.
enum ExitCode { kDone = 0, kFailed = 1, kProblems = 3, kDiffers = 4 };

// Says on standard output what was done and on standard error what was not.
int Convert(const ConvertArguments& arguments);

}  // namespace msrt
