// What msrun is asked to run: a compiled model with inputs.
#pragma once

#include <memory>
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
  double load_millis = 0;  // open to ready
};

// Built-in delegates and those of the plugins, threads, a log to standard error.
Result<std::shared_ptr<const Environment>> MakeEnvironment(const Arguments& arguments);

// Loads, compiles and makes inputs: from files where given, otherwise as tools/tensors/made_input.h
// says.
Result<Workload> Prepare(const Arguments& arguments);

Result<double> PeakResidentBytes();

// Measures every way of running every node and writes a file for --costs. `seconds` bounds the
// time.
Status Calibrate(const Arguments& arguments);

}  // namespace msrt
