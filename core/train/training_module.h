// The training form of a model: a module whose parameters are state, with one entry that makes a
// training step and others that use the same parameters without changing them.
//
//   train       the model's inputs, "target", "learning_rate" (a number) -> "loss" (the mean over
//               the batch); for losses over classes "correct" (i64, how many targets are the
//               likeliest class); "gradient_norm" if it is limited; "skipped" (bool) if the loss
//               scale is dynamic
//   eval        the model's inputs -> its outputs
//   test        the model's inputs, "target" -> "loss", "correct", the model's outputs
//   accumulate  only with accumulation: the inputs of train without the rate -> "loss", "correct";
//               adds the gradients to those that the next run of train uses
//
// Made before passes, so that they optimise the whole step.
#pragma once

#include <optional>

#include "core/base/log.h"
#include "core/graph/graph.h"
#include "core/train/dataset.h"
#include "core/train/training_spec.h"

namespace msrt {

class OpSet;  // ops/registry.h

inline constexpr std::string_view kTrainEntry = "train", kEvalEntry = "eval", kTestEntry = "test",
                                  kAccumulateEntry = "accumulate";
// Slots that are no part of a parameter.
inline constexpr std::string_view kUpdatesSlot = "msrt.updates", kLossScaleSlot = "msrt.loss_scale",
                                  kGrowthSlot = "msrt.loss_scale_updates";
// Keys of Module::metadata: the name of the model, which marks a training module, the number of
// micro-batches of an update, the number of the output that the loss compares, and the class of
// targets that do not count, if there is one.
inline constexpr std::string_view kTrainingKey = "msrt.training",
                                  kAccumulationKey = "msrt.accumulation",
                                  kOutputKey = "msrt.loss_output",
                                  kIgnoredKey = "msrt.ignored_class";

// `model`: for inference, from a file, the zoo or the C API. `ops` are user-defined ops; may be
// null.
Result<Module> MakeTrainingModule(Module model, const TrainingSpec& spec,
                                  const OpSet* ops = nullptr);

// Logs a warning if passes for inference have fused layers of the model: then they have also folded
// its batch normalisations and left out its dropouts. `name` is for the message.
void WarnAboutInferenceForm(const Module& model, std::string_view name, const Log& log);

// Returns the value of a key, or nothing.
std::string_view MetadataOf(const Module& module, std::string_view key);
// Returns the position of an entry of that name, or an error that lists the entries.
Result<size_t> FindEntry(const Module& module, std::string_view name);
// Whether the loss compares scores with numbers of classes. Requires a training module.
bool HasClassTargets(const Module& training);
// Returns the number of the model's output that the loss compares.
size_t LossOutput(const Module& training);
// Returns the class of targets that do not count, if there is one.
std::optional<int64_t> IgnoredClass(const Module& training);
// Returns how many targets of a batch, its last tensor, are not of the ignored class.
int64_t CountTargets(const Batch& batch, std::optional<int64_t> ignored);
// Returns the number of classes between which that output decides: its second dim. 0: not known.
int64_t OutputClasses(const Module& training);
// Whether an output of a graph has probabilities: it is a Softmax.
bool HasProbabilities(const Graph& graph, size_t output = 0);

}  // namespace msrt
