// The workload of msrun: a compiled model with inputs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/run/session.h"
#include "tools/msrun/arguments.h"

namespace msrt {

struct Workload {
  std::shared_ptr<const CompiledModel> model;
  std::unique_ptr<Session> session;
  std::vector<RunValue> inputs;
  double load_millis = 0;  // from opening the file until the session is ready
  // Of a training step: what it changes from the plain computation, and its activations if they are
  // limited.
  std::vector<std::pair<std::string, std::string>> changes = {};
  std::optional<ActivationMemory> activations = {};
};

// Creates an environment with the built-in delegates and those of the plugins, the threads, and a
// log to standard error.
Result<std::shared_ptr<const Environment>> MakeEnvironment(const Arguments& arguments);

// The options of the runtime that the arguments choose.
Result<CompileOptions> CompileOptionsFor(const Arguments& arguments,
                                         const Environment& environment);

// Loads and compiles the model and prepares its inputs: from files where given, otherwise random
// ones (tools/tensors/made_input.h).
Result<Workload> Prepare(const Arguments& arguments);

Result<double> PeakResidentBytes();

// Measures every way of running every node and writes a file for --costs. `seconds` bounds the
// time.
Status Calibrate(const Arguments& arguments);

}  // namespace msrt
