// Options of train and bench --training that trade memory, rounding or convergence for speed.
#pragma once

#include <string>

#include "core/train/boost.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace msrt {

struct SpeedOptions {
  std::string activation_memory;  // empty: no limit
  std::string precision = "f32", boost = "O1";
};

// `needed`: an option without which these mean nothing; may be null.
void AddSpeedOptions(CLI::App* app, SpeedOptions* options, CLI::Option* needed);
Status CheckSpeedOptions(const SpeedOptions& options);

// Applies the options to the settings, whose compile options have the typical dims of a batch.
// Returns the level, for ListChanges.
Result<Boost> ApplySpeedOptions(const SpeedOptions& options, const Evaluator* evaluator,
                                const TrainingSettings& settings);

// Prints a line for each change.
void PrintChanges(const std::vector<std::pair<std::string, std::string>>& changes);

}  // namespace msrt
