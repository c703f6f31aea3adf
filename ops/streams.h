// The streams of a module: the numbers that tell its random draws apart. ops/random.cc has the rule
// by which a node draws.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "ops/op_def.h"

namespace msrt {

// Whether the node draws random numbers by the rule of ops/random.cc: not a user-defined op, and
// not a Dropout outside training.
bool DrawsNumbers(const Node& node);
// Which input of a node that draws is its step. Requires DrawsNumbers.
size_t StepInput(const OpDef& def);
// Which input is the place of the output in the whole, if the op has such an input.
std::optional<size_t> PositionInput(const OpDef& def);
// Whether a node that draws has its own step. Requires DrawsNumbers.
bool HasStep(const Node& node);
// Makes the value an input of the node, after omitted ones where it has fewer.
void SetInput(Node* node, size_t input, ValueId value);

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
