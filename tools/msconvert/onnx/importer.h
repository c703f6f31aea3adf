// Imports an ONNX file as a module: graphs, subgraphs with their captures, functions expanded,
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
  GivenSizes shapes;  // of inputs or symbols; override those of the file
  // Keeps unknown ops, for kernels that an application registers, if the file declares the types of
  // their outputs.
  bool keep_unknown = false;
  bool for_training = false;  // keep what training needs: dropouts, batch normalisations
  std::function<void(std::string_view stage, double part)> progress;  // may be empty
  // Limits, so that a small file can neither expand without bound nor keep the importer busy.
  size_t max_nodes = 1'000'000;                   // of all graphs, with functions written out
  uint64_t max_copied_bytes = uint64_t{1} << 30;  // of functions and graphs, each time that one is
                                                  // written out; plus four times the file
  // Rules of plugins for ops that the library does not know, and the ops that plugins define.
  std::vector<RegisteredImporter> importers = {};
  const OpSet* ops = nullptr;
  // For such rules, and for Ifs whose conditions depend on constants and shapes only: then just the
  // branch that is taken is read.
  const Evaluator* evaluator = nullptr;
};

// The module, which is complete if there are no problems.
struct ImportResult {
  Module module;
  Problems problems{CureFor};
};

// Returns an error if the file is invalid or cannot be read. Valid parts of a model that are not
// supported are problems of the result.
Result<ImportResult> ImportFile(const std::string& path, const ImportOptions& options, Io* io);
// `path` is for external data and messages; may be empty.
Result<ImportResult> ImportBytes(std::span<const std::byte> bytes, const std::string& path,
                                 const ImportOptions& options, Io* io);

}  // namespace msrt::onnx_import
