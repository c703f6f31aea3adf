// Splits a run over an image into phases. Each phase streams its targets over the rows of the
// image. Statistics of the whole image (global pools, norms, softmax over space) need an extra
// phase: it stores small values, such as one mean for each row, from which the statistics follow.
#pragma once

#include <vector>

#include "core/run/piece_runner.h"

namespace msrt {

// A value that a phase computes, cut along one dim.
struct StreamTarget {
  ValueId value;
  int dim;  // -1: all at once
};

struct StreamPhase {
  // Computed whole, before the phase, from `known`, which they then belong to.
  std::vector<ValueId> derived;
  std::vector<ValueId> known;  // whole values that earlier phases have stored, and `derived`
  std::vector<StreamTarget> targets;
};

struct PhaseOptions {
  // Values of up to this size may be stored whole.
  size_t max_stored_bytes = size_t{64} << 20;
};

// Returns the phases in order. The last one computes the outputs of the graph, cut along their rows
// (the last dim but one); the targets of the others are stored. Outputs that are stored or derived
// are no targets of the last phase.
Result<std::vector<StreamPhase>> FindPhases(const PieceRunner& runner, const PhaseOptions& options);

// Returns the target's box from cut `begin` to `end` of its dim.
Box CutOf(const PieceRunner& runner, const StreamTarget& target, Interval rows);
// Returns the extent of the dim that the target is cut along; 1 if it is not cut.
int64_t RowsOf(const PieceRunner& runner, const StreamTarget& target);

}  // namespace msrt
