// What `msrun bench --training` measures: a training step of a model on random inputs, instead of
// its inference.
#pragma once

#include <random>

#include "core/graph/graph.h"
#include "core/run/value.h"
#include "core/train/training_spec.h"
#include "tools/msrun/arguments.h"

namespace msrt {

// Returns how the model is trained. The loss is cross-entropy over classes, or mean squares if
// --loss says so.
Result<TrainingSpec> TrainingSpecOf(const Arguments& arguments);

// Returns a random value for an input of the training entry. Targets are classes that the model
// has; the learning rate is so small that the parameters hardly move.
Result<RunValue> RandomTrainingValue(const Graph& graph, ValueId input, const Dims& dims,
                                     int64_t classes, std::mt19937_64& random);

}  // namespace msrt
