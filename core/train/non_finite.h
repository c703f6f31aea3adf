// Names the first value of a training step that is not finite, for a run whose loss is not.
#pragma once

#include <memory>
#include <string>

#include "core/compile/environment.h"
#include "core/train/trainer.h"

namespace msrt {

// Repeats the forward and backward computation of one step with all its values as outputs, and
// returns the first one with an infinity or NaN: "input 'image'", "parameter 'conv1.weight'",
// "'conv1' (Conv)". Empty: all are finite. `training`: from MakeTrainingModule. `before`: the state
// before the step. Needs memory for all values at once.
Result<std::string> FindNonFinite(std::shared_ptr<const Environment> environment, Module training,
                                  const Checkpoint& before, const Batch& batch, double rate);

// Returns the name of the first parameter or running statistic with an infinity or NaN. Empty: all
// are finite. Reads each number once.
std::string NonFiniteParameter(const Checkpoint& checkpoint);

// Trainer::Step, but a step that fails leaves the state as before it, and the error of a loss that
// is not finite also names the first such value. Copies the state before each step.
Result<StepResult> SafeStep(Trainer* trainer, const std::shared_ptr<const Environment>& environment,
                            const Batch& batch, const RunOptions& run = {});

}  // namespace msrt
