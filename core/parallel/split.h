// Splits a graph over ranks: rewrites it into the graph of one rank, which computes its part of the
// outputs from its part of the inputs. Nodes become pieces (SpaceDef::localize), and msrt.Exchange
// nodes fetch what other ranks have computed. The result is an ordinary module. core/README.md says
// how the work is shared.
#pragma once

#include "core/graph/graph.h"
#include "core/parallel/split_plan.h"
#include "ops/evaluator.h"

namespace msrt {

struct RankModule {
  Module module;
  // Of the whole inputs and outputs: the boxes that this rank is given and delivers.
  std::vector<Box> inputs, outputs;
  std::vector<bool> writes;                   // by output: no lower rank delivers the same box
  int64_t bytes_sent = 0, messages_sent = 0;  // in one run
  int64_t exchanges = 0;                      // Exchange nodes
  // Rows of all values that this rank computes and a lower rank computes too, parts of rows
  // rounded up.
  int64_t recomputed_rows = 0;
};

// `module` is validated, and optimised if it is to be: passes do not look through pieces. `inputs`
// are the dims of the whole inputs of its entry number `entry`. kUnsupported, with the node, for
// graphs that cannot be split.
Result<RankModule> Split(const Module& module, size_t entry, std::span<const Dims> inputs,
                         const Evaluator& evaluator, const SplitOptions& options, int rank);

}  // namespace msrt
