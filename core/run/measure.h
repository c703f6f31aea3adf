// Measures what placement otherwise estimates: every way of running every node of a model, at its
// typical shapes.
#pragma once

#include <functional>

#include "core/compile/compile.h"
#include "core/place/cost_table.h"

namespace msrt {

struct MeasureOptions {
  double budget_seconds =
      60;  // looked at between nodes: all ways of one node are measured, or none
  size_t most_bytes = size_t{2} << 30;  // what one candidate's tensors may take
  // Called before each node with how many are done and how many there are.
  std::function<void(size_t done, size_t all)> progress;
};

struct MeasureReport {
  size_t measured = 0;
  size_t known = 0;   // the table had them, or a node before is the same
  size_t failed = 0;  // do not compile or run on made-up data, or depend on data; estimates must do
  size_t nodes_left = 0;  // for want of time
};

// Adds to the table; where it was measured, the caller says. Inputs are random numbers, integers
// are 1. Nothing else should be running meanwhile.
MeasureReport MeasureCosts(const CompiledModel& model, const MeasureOptions& options,
                           CostTable* table);

// A file for PlaceOptions::costs. What was measured elsewhere is used too, with a warning in the
// log. `library` is this one's version.
Result<std::shared_ptr<const CostTable>> ReadCosts(const Environment& environment,
                                                   const std::string& path,
                                                   std::string_view library);
// What costs measured here and now are marked with.
CostOrigin OriginHere(const Environment& environment, std::string_view library);

}  // namespace msrt
