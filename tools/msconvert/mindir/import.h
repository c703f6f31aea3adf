// Imports a MindIR file as a module: graphs and closures with explicit captures, tuples flattened,
// weights as constants, parameters that the model assigns as state.
#pragma once

#include <functional>
#include <string>

#include "core/base/io.h"
#include "core/graph/graph.h"
#include "tools/msconvert/problems.h"
#include "tools/tensors/sizes.h"

namespace msrt::mindir_import {

struct ImportOptions {
  GivenSizes shapes;          // of inputs or symbols; override those of the file
  bool for_training = false;  // keep what training needs: dropouts, batch normalisations
  std::function<void(std::string_view stage, double part)> progress;  // may be empty
  // Limits, so that a small file can neither expand without bound nor keep the importer busy. A
  // graph is written out once for every set of closures and weights among its arguments.
  size_t max_nodes = 1'000'000;
  size_t max_graphs = 20'000;
};

// Returns what a user can do about a part of a MindIR model that cannot be converted, by words in
// the reason.
std::string CureFor(std::string_view reason);

// The module, which is complete if there are no problems.
struct ImportResult {
  Module module;
  Problems problems{CureFor};
};

// Decides by the first bytes.
bool LooksLikeMindIr(std::span<const std::byte> bytes);

// Returns an error if the file is invalid or cannot be read. Valid parts of a model that are not
// supported are problems of the result.
Result<ImportResult> ImportFile(const std::string& path, const ImportOptions& options, Io* io);
// `path` is for external data and messages; may be empty.
Result<ImportResult> ImportBytes(std::span<const std::byte> bytes, const std::string& path,
                                 const ImportOptions& options, Io* io);

}  // namespace msrt::mindir_import
