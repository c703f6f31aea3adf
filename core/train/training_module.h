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
// With stages of freezing there are train.1, accumulate.1, train.2, ..., which leave more and more
// parameters as they are.
//
// Made before passes, so that they optimise the whole step.
#pragma once

#include "core/graph/graph.h"
#include "core/train/training_spec.h"

namespace msrt {

class OpSet;  // ops/registry.h

inline constexpr std::string_view kTrainEntry = "train", kEvalEntry = "eval", kTestEntry = "test",
                                  kAccumulateEntry = "accumulate";
// Slots that are no part of a parameter.
inline constexpr std::string_view kUpdatesSlot = "msrt.updates", kLossScaleSlot = "msrt.loss_scale",
                                  kGrowthSlot = "msrt.loss_scale_updates";
// Keys of Module::metadata: the name of the model, which marks a training module, the number of
// micro-batches of an update, and the number of stages of freezing.
inline constexpr std::string_view kTrainingKey = "msrt.training",
                                  kAccumulationKey = "msrt.accumulation",
                                  kFreezingKey = "msrt.freezing_stages";

// What was made of a spec, for the entry train.
struct SpecReport {
  ActivationMemory activations;  // if there is a limit
  size_t reduced_values = 0;     // kept in bf16
  size_t centralized = 0;        // gradients
  std::vector<size_t> frozen;    // parameters that are frozen, by stage
};

// `model`: for inference, from a file, the zoo or the C API. `ops` are user-defined ops; may be
// null. So may `report`.
Result<Module> MakeTrainingModule(Module model, const TrainingSpec& spec,
                                  const OpSet* ops = nullptr, SpecReport* report = nullptr);

// Returns the name of an entry in a stage of freezing: "train", "train.1".
std::string EntryOfStage(std::string_view entry, int stage);

// Returns the value of a key, or nothing.
std::string_view MetadataOf(const Module& module, std::string_view key);
// Returns the position of an entry of that name, or an error that lists the entries.
Result<size_t> FindEntry(const Module& module, std::string_view name);
// Whether the loss compares scores with numbers of classes. Requires a training module.
bool HasClassTargets(const Module& training);
// Returns the number of classes between which the model's first output decides: its second dim. 0:
// not known.
int64_t OutputClasses(const Module& training);
// Whether the first output of a graph has probabilities: it is a Softmax.
bool HasProbabilities(const Graph& graph);

}  // namespace msrt
