// The memory of activations: what a training step keeps of the forward pass for its gradients. A
// limit is met by recomputation (core/autodiff/recompute.h); reduced storage halves what is kept.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "ops/evaluator.h"

namespace msrt {

// The limit, and the batch for which it is planned.
struct ActivationLimit {
  double bytes = 0;  // 0: `part` counts
  double part = 0;   // of the bytes that are kept without a limit; 0: there is no limit
  // Dims by name of input. Dims with the same symbol are equal, and a first dim that is still open
  // is the batch.
  std::vector<std::pair<std::string, Dims>> typical = {};
  const Evaluator* evaluator = nullptr;  // for sizes that are computed from others

  bool is_set() const { return bytes > 0 || part > 0; }
};

// Reads "2GiB", "1500MB", "65536" or "40%".
Result<ActivationLimit> ParseActivationLimit(std::string_view text);

// The memory of activations at the typical sizes, as planned, and what it costs.
struct ActivationMemory {
  double kept_bytes = 0;     // if all are kept
  double planned_bytes = 0;  // the most at one time, with recomputation
  double recomputed = 0;     // the part of the forward pass that is computed again
  size_t blocks = 0;
};

// Lets the nodes from `forward_nodes` on compute again what does not fit. An error names the least
// memory that would do, or the input whose typical dims are missing.
Result<ActivationMemory> LimitActivations(const ActivationLimit& limit, size_t forward_nodes,
                                          Graph* graph);

// Stores the f32 values that nodes [0, model_nodes) make and nodes from `forward_nodes` on read in
// bf16 meanwhile: Casts after the last forward use and before the first backward one. Values of
// rank 0 and 1 stay, as statistics of channels are small. Returns the number of values.
Result<size_t> StoreActivationsReduced(size_t model_nodes, size_t forward_nodes, Graph* graph);

}  // namespace msrt
