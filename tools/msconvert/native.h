// A file for this kind of machine: the module after all passes, and beside its weights the forms
// that the kernels of this machine pack them into.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "tools/tensors/sizes.h"

namespace msrt {

struct NativeModel {
  Module module;  // to be written to the file
  ModelExtras extras;

  // "native: 54 packed weights for avx2, 102.1 MB" for people, and the same as JSON.
  std::string Text() const;
  std::string Json() const;
};

// How the file will be loaded.
struct NativeOptions {
  int threads = 0;     // of the runtime, which decide how kernels share their work; 0: one for each
                       // core
  GivenSizes typical;  // of inputs that the module leaves open
  std::vector<std::string> disabled_passes;
};

// Compiles the module as loading it would. `plugins` has the delegates and ops of plugins.
Result<NativeModel> PackForThisMachine(const Environment& plugins, Module module,
                                       const NativeOptions& options);

}  // namespace msrt
