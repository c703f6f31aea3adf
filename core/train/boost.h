// Boost: one switch for how far training may leave the plain computation to be faster, and the list
// of what it changes. Mixed precision can also be had alone.
//
//   off  no fusion, no other layouts, no passes: each node as the model has it, for debugging
//   O1   the same bits of every node, by the fastest kernels: the default
//   O2   O1 with mixed precision: other rounding
//   O3   O2 with gradient centralisation, two batches for an update, and parameters that freeze in
//        the course of the run: may change how training converges
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/compile/compiled_model.h"
#include "core/train/training_module.h"

namespace msrt {

enum class Boost : uint8_t { kOff, kO1, kO2, kO3 };
std::string_view BoostName(Boost boost);
// Reads "off", "O1", "O2" or "O3".
Result<Boost> ParseBoost(std::string_view text);

enum class Precision : uint8_t {
  kF32,
  // Parameters, sums and the optimizer in f32; products and convolutions round their operands to
  // bf16 where the processor has such instructions; what gradients need is kept in bf16.
  kMixed,
};
// Reads "f32" or "mixed".
Result<Precision> ParsePrecision(std::string_view text);

// What a switch changes: the settings of a training before its module is made.
struct TrainingSettings {
  TrainingSpec* spec = nullptr;
  CompileOptions* compile = nullptr;
  double* rate = nullptr;  // the learning rate
  bool fixed_sums = false;
};

// kUnsupported if products must be exact, in a message that says what to change.
Status ApplyPrecision(Precision precision, const TrainingSettings& settings);
// Applies what the level adds to the settings as they are, and the precision that it implies.
Status ApplyBoost(Boost boost, const TrainingSettings& settings);

// One line for each change from the plain computation, as a name and what it does. `report`: of the
// module that was made of the settings.
std::vector<std::pair<std::string, std::string>> ListChanges(Boost boost,
                                                             const TrainingSettings& settings,
                                                             const SpecReport& report);

}  // namespace msrt
