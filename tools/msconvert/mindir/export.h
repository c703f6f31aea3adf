// Exports a module as a MindIR file that MindSpore 2.10 loads and runs: ops as primitives, control
// flow as functions that call each other, weights and state as parameters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/io.h"
#include "core/graph/graph.h"

namespace msrt::mindir_export {

// A node that cannot be expressed in MindSpore's primitives.
struct Refusal {
  std::string op, node, reason;
};

// Returns what a user can do about a refusal.
std::string CureFor(std::string_view reason);

struct WriteOptions {
  // Beyond so many bytes, weights go into files beside the model, as MindSpore does.
  uint64_t max_bytes_inside = uint64_t{1} << 30;
};

// Writes `path` (and perhaps <path without extension>_variables/data_0) if nothing is refused.
// Requires a validated module.
Result<std::vector<Refusal>> WriteFile(const Module& module, const std::string& path, Io* io,
                                       const WriteOptions& options = {});

}  // namespace msrt::mindir_export
