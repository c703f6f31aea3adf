// Adds an optimizer to a training graph: its state slots, one node over all parameters, and the
// writes of the results.
#pragma once

#include "core/graph/graph.h"
#include "core/train/parameters.h"
#include "ops/grad_builder.h"

namespace msrt {

// Appends a slot and returns its number.
int64_t AddSlot(Module* module, std::string name, ConstTensor initial, StateRole role);
ValueId ReadSlot(const Module& module, int64_t slot, GradBuilder* builder);
void WriteSlot(int64_t slot, ValueId value, GradBuilder* builder);
// A constant tensor with equal elements of a float type or i64.
Result<ConstTensor> FilledConstant(DType dtype, const Dims& dims, double number);

// The values that the optimizer of a step uses.
struct OptimizerInputs {
  ValueId rate = kNoValue, updates = kNoValue;
  ValueId factor = kNoValue, skip = kNoValue;  // may be kNoValue
  std::vector<ValueId> parameters, gradients;  // read from slots, and computed
  std::vector<int64_t> slots;                  // of the parameters
};

// Returns the new parameters, which are also written to their slots. `builder` is one of a graph of
// the module. Graphs with the same parameters share the slots of the optimizer.
Result<std::vector<ValueId>> AddOptimizer(Module* module, const TrainingSpec& spec,
                                          const std::vector<Parameter>& parameters,
                                          const OptimizerInputs& inputs, GradBuilder* builder);

}  // namespace msrt
