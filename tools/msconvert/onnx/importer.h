// An ONNX file as a module of ours: graphs, subgraphs with their captures, functions expanded,
// every op lifted to opset 23.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/io.h"
#include "core/extend/registered_rewrite.h"
#include "core/graph/graph.h"
#include "tools/msconvert/onnx/cures.h"
#include "tools/msconvert/problems.h"
#include "tools/tensors/sizes.h"

namespace msrt::onnx_import {

struct ImportOptions {
  GivenSizes shapes;  // of inputs or symbols, instead of what the file says
  // Ops that are not known stay as they are, for kernels that an application registers, if the file
  // declares what they give.
  bool keep_unknown = false;
  std::function<void(std::string_view stage, double part)> progress;  // may be empty
  // A small file must neither blow up nor keep the importer busy.
  size_t most_nodes = 1'000'000;  // of all graphs, with functions written out
  uint64_t most_copied_bytes =
      uint64_t{1}
      << 30;  // of functions and graphs, each time that one is written out; four files beyond it
  // What plugins bring: rules for ops that the library does not know, and ops with a meaning of
  // their own.
  std::vector<RegisteredImporter> importers = {};
  const OpSet* ops = nullptr;
  // Such rules need it, and Ifs whose conditions constants and shapes decide, of which only the
  // branch that is taken is read then.
  const Evaluator* evaluator = nullptr;
};

// What could be read. The module is whole if there are no problems.
struct Imported {
  Module module;
  Problems problems{CureFor};
};

// Errors are for files that are wrong or cannot be read; what is right but beyond us is a problem
// of the result.
Result<Imported> ImportFile(const std::string& path, const ImportOptions& options, Io* io);
// `path` is for external data and messages; may be empty.
Result<Imported> ImportBytes(std::span<const std::byte> bytes, const std::string& path,
                             const ImportOptions& options, Io* io);

}  // namespace msrt::onnx_import
