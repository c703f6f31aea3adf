// What msrun is asked to run: the arguments of every verb, and from them a compiled model with inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile.h"
#include "core/run/session.h"

namespace msrt {

struct Arguments {
  std::string model;
  std::vector<std::string> inputs, shapes;  // NAME=FILE.npy or a list's NAME=FOLDER, NAME=1x3x224x224
  std::vector<std::string> plugins;         // PATH[:OPTIONS]
  std::vector<std::string> pins;
  std::string costs;  // a file of measured costs
  std::string delegates, accuracy = "default";
  std::vector<std::string> disabled_passes;
  int threads = 0;
  double seconds = 2;
  int warmup = 3;
  uint64_t seed = 0;
  size_t memory_cap = 0;
  bool per_op = true, copy_file = false, strict = false;
  std::vector<std::string> dump;
  std::string explain;  // text, json or svg, and :FILE; empty: nothing
  std::string json, trace, output_dir, check_dir, output_file;
  double rtol = 1e-4;
  std::vector<std::string> compare;
};

struct Workload {
  std::shared_ptr<const CompiledModel> model;
  std::unique_ptr<Session> session;
  std::vector<RunValue> inputs;
  double load_millis = 0;  // open to ready
};

// Built-in delegates and those of the plugins, threads, a log to standard error.
Result<std::shared_ptr<const Environment>> MakeEnvironment(const Arguments& arguments);

// Loads, compiles and makes inputs: from files where given, otherwise as tools/tensors/made_input.h says.
Result<Workload> Prepare(const Arguments& arguments);

Result<double> PeakResidentBytes();

// Measures every way of running every node and writes a file for --costs. `seconds` bounds the time.
Status Calibrate(const Arguments& arguments);

}  // namespace msrt
