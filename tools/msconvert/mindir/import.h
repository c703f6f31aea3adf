// A MindIR file as a module of ours: graphs and closures with explicit captures, tuples flattened,
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
  GivenSizes shapes;  // of inputs or symbols, instead of what the file says
  std::function<void(std::string_view stage, double part)> progress;  // may be empty
  // A small file must neither blow up nor keep the importer busy. A graph is written out once for
  // every set of closures and weights that it is handed.
  size_t most_nodes = 1'000'000;
  size_t most_graphs = 20'000;
};

// What a user can do about a part of a MindIR model that cannot be converted, by what the reason
// speaks of.
std::string CureFor(std::string_view reason);

// What could be read. The module is whole if there are no problems.
struct Imported {
  Module module;
  Problems problems{CureFor};
};

// By the first bytes; a file that is neither may still be called one.
bool LooksLikeMindIr(std::span<const std::byte> bytes);

// Errors are for files that are wrong or cannot be read; what is right but beyond us is a problem
// of the result.
Result<Imported> ImportFile(const std::string& path, const ImportOptions& options, Io* io);
// `path` is for external data and messages; may be empty.
Result<Imported> ImportBytes(std::span<const std::byte> bytes, const std::string& path,
                             const ImportOptions& options, Io* io);

}  // namespace msrt::mindir_import
