// Loads MindSpore's checkpoints, which are tensors by name, without a graph, into the weights of a
// module.
#pragma once

#include <string>
#include <vector>

#include "core/base/io.h"
#include "core/graph/graph.h"

namespace msrt::mindir_import {

struct CheckpointLoad {
  size_t loaded = 0;
  std::vector<std::string>
      unused;  // tensors that are no weights of the module, such as the state of an optimizer
};

// Sets the constants and the initial data of the states that have the names of tensors of the file.
// Everything that does not fit is one error: weights that the file lacks, other element types,
// other dims. Weights are the states, and the constants whose name an importer took from the model
// (names that it made up contain a '/').
Result<CheckpointLoad> LoadCheckpoint(const std::string& path, Io* io, Module* module);

}  // namespace msrt::mindir_import
