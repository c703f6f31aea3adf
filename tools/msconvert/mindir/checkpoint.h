// MindSpore's checkpoints: tensors by name, without a graph. Their data take the place of a
// module's weights.
#pragma once

#include <string>
#include <vector>

#include "core/base/io.h"
#include "core/graph/graph.h"

namespace msrt::mindir_import {

struct CheckpointLoad {
  size_t loaded = 0;
  std::vector<std::string>
      unused;  // what the module has no weight for: the state of an optimizer, say
};

// Sets the constants and the initial data of the states that are called like tensors of the file.
// All that does not fit is one error: weights that the file lacks, other element types, other dims.
// Weights are the states, and the constants whose name an importer took from the model (what it
// made up itself has a '/').
Result<CheckpointLoad> LoadCheckpoint(const std::string& path, Io* io, Module* module);

}  // namespace msrt::mindir_import
