// The command line of msrun: every verb's arguments, parsed and checked before any work starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tools/files/output_file.h"
#include "tools/msrun/launch.h"
#include "tools/msrun/speed_options.h"

namespace msrt {

enum ExitCode : int { kDone = 0, kFailed = 1, kWrongCommandLine = 2 };

struct Arguments {
  enum class Verb { kBench, kRun, kCalibrate, kInfo, kLaunch } verb = Verb::kBench;
  std::string model;
  std::vector<std::string> inputs,
      shapes;  // NAME=FILE.npy or a list's NAME=FOLDER; NAME=1x3x224x224 or SYMBOL=8
  std::vector<std::string> plugins;  // PATH[:OPTIONS]
  std::vector<std::string> pins;
  std::string costs;  // a file of measured costs
  std::string delegates, accuracy = "default";
  std::vector<std::string> disabled_passes;
  std::string training, loss;  // bench --training: the optimizer; empty: inference
  SpeedOptions speed;          // of training
  int64_t image = 0;           // of a zoo model; 0: its own size
  int threads = 0;
  int streams = 1;
  double seconds = 2;
  int warmup = 3;
  uint64_t seed = 0;
  size_t memory_cap = 0;
  bool per_op = true, copy_file = false, strict = false, quiet = false, verbose = false;
  std::vector<std::string> dump;
  std::string explain;  // text, json or svg, perhaps with :FILE; empty: no report
  std::string json, trace, output_dir, check_dir, output_file;
  double rtol = 1e-4;
  std::vector<std::string> compare;
  LaunchArguments launch;

  // Whether to print readable reports: not with --quiet, nor if JSON goes to standard output.
  bool prints() const { return !quiet && json != "-"; }
  // The form of `explain` and the file it goes to, "-" for standard output.
  std::string explain_form() const { return explain.substr(0, explain.find(':')); }
  std::string explain_file() const;
  // The file that `calibrate` writes.
  std::string costs_file() const { return output_file.empty() ? model + ".costs" : output_file; }
};

// Parses and checks the command line. Returns false if the process shall end with *exit_code; the
// reason, the help or the version has been printed.
bool ParseArguments(int argc, char** argv, Arguments* arguments, int* exit_code);

// Splits a list of "NAME=VALUE" arguments into pairs, in order; the name may contain '='. `option`
// is for messages.
Result<std::vector<std::pair<std::string, std::string>>> SplitPairs(
    std::string_view option, const std::vector<std::string>& texts);

// Returns the files that will be read, so that outputs do not replace them.
FilesRead FilesReadBy(const Arguments& arguments);

}  // namespace msrt
