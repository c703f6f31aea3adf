// msconvert's command line: as it was given, and as parsed and checked before the work starts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/files/output_file.h"
#include "tools/msconvert/weights.h"
#include "tools/msconvert/zoo.h"
#include "tools/tensors/sizes.h"

namespace msrt {

// Exit codes of the process.
enum ExitCode { kDone = 0, kFailed = 1, kWrongCommandLine = 2, kProblems = 3, kDiffers = 4 };

struct ConvertArguments {
  std::string input, output;
  std::string optimize = "default", target = "portable", json, weights, checkpoint,
              verify;          // empty: not requested
  int64_t weights_block = -1;  // -1: the default
  int threads = 0;             // of the runtime that a native file is for; 0: all cores
  double tolerance =
      -1;  // of the range of each output; -1: by the types that the model computes in
  std::vector<std::string> disabled, shapes, typical, states, plugins, verify_shapes, inputs;
  zoo::Options zoo;
  bool zoo_options = false;  // some of them were given
  bool train = false;        // for training, not inference
  bool quiet = false, verbose = false, check = false, progress = false, keep_unknown = false;

  bool from_zoo() const { return input.starts_with("zoo:"); }
  bool from_msrt() const { return input.ends_with(".msrt"); }
  bool to_mindir() const { return output.ends_with(".mindir"); }
  bool native() const { return target == "native"; }
  bool verifies_folder() const { return !verify.empty() && verify != "original"; }
};

// The parsed texts of the arguments.
struct CheckedArguments {
  GivenSizes shapes, typical, verify_shapes;
  std::map<std::string, std::string> inputs;  // files, by the name of the input
  WeightStorage storage;
};

// Refuses options that contradict each other or would have no effect, and files that must not or
// cannot be written. Adds the files that will be read to `read`.
Result<CheckedArguments> Check(const ConvertArguments& arguments, FilesRead* read);

}  // namespace msrt
