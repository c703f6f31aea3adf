// Measures the costs that placement otherwise estimates: every candidate for every node of a model,
// at its typical shapes.
#pragma once

#include <functional>

#include "core/compile/compile.h"
#include "core/place/cost_table.h"

namespace msrt {

struct MeasureOptions {
  // Checked between nodes: all candidates of a node are measured, or none.
  double budget_seconds = 60;
  size_t max_bytes = size_t{2} << 30;  // for the tensors of one candidate
  // Called before each node with the number of nodes done and the number of all nodes.
  std::function<void(size_t done, size_t all)> progress;
};

struct MeasureReport {
  size_t measured = 0;
  size_t known = 0;  // already in the table, or the same as an earlier node
  // Do not compile, do not run on generated data, or depend on data; placement uses estimates.
  size_t failed = 0;
  size_t nodes_left = 0;  // not measured because the time was up
};

// Adds to the table; the caller sets its origin. Inputs are random numbers, integers are 1. Nothing
// else should run meanwhile.
MeasureReport MeasureCosts(const CompiledModel& model, const MeasureOptions& options,
                           CostTable* table);

// Reads a file for PlaceOptions::costs. Costs measured on another machine or version are used too,
// with a warning in the log. `library` is the version of this library.
Result<std::shared_ptr<const CostTable>> ReadCosts(const Environment& environment,
                                                   const std::string& path,
                                                   std::string_view library);
// Returns the origin of costs that this process measures.
CostOrigin CurrentOrigin(const Environment& environment, std::string_view library);

}  // namespace msrt
