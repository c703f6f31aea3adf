// The command line of 'msrun image': parsed and checked before any work starts.
#pragma once

#include <optional>
#include <string>

#include "core/image/jobs/image_job.h"
#include "tools/msrun/arguments.h"
#include "tools/msrun/rank_limits.h"

namespace msrt {

struct ImageArguments {
  Arguments common;  // model, threads, plugins, quiet, verbose, json
  JobOptions job;
  std::string explain;     // a file for the picture of the plan
  bool plan_only = false;  // nothing is computed
  bool split_given = false;
  RankLimits limits;
  double progress_seconds = 5;  // between lines where there is no terminal
};

// Returns as ParseArguments does. argv[0] is "image".
bool ParseImageArguments(int argc, char** argv, ImageArguments* arguments, int* exit_code);

// Parses "2GiB", "1500MB", "65536". An error names `option`.
Result<size_t> ParseByteCount(std::string_view option, const std::string& text);
// Parses "2x3" to two positive numbers.
Result<std::pair<int64_t, int64_t>> ParsePair(std::string_view option, const std::string& text);

}  // namespace msrt
