// The streams of a module: the numbers that tell its random draws apart. ops/random.cc has the rule
// by which a node draws.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "ops/op_def.h"

namespace msrt {

// Whether the node draws random numbers by the rule of ops/random.cc: not a user-defined op, and
// not a Dropout outside training.
bool DrawsNumbers(const Node& node);
// Whether a node that draws has its own step. Requires DrawsNumbers.
bool HasStep(const Node& node);

// Numbers that no node of the module has as its stream.
class FreeStreams {
 public:
  explicit FreeStreams(const Module& module);
  int64_t Take();

 private:
  std::unordered_set<int64_t> used_;
  int64_t next_ = 0;
};

// Gives each node that draws and has no stream the smallest free one, in the order of graphs and
// nodes. Requires op entries.
void AssignStreams(Module* module);

}  // namespace msrt
