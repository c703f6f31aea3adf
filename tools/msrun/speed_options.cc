#include "tools/msrun/speed_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace msrt {

void AddSpeedOptions(CLI::App* app, SpeedOptions* options, CLI::Option* needed) {
  auto* const memory = app->add_option(
      "--activation-memory", options->activation_memory,
      "limit of what a step keeps of the forward pass for gradients: 2GiB, or 40% of what it "
      "keeps otherwise; the rest is computed again");
  auto* const precision =
      app->add_option("--precision", options->precision,
                      "mixed: bf16 products, and bf16 storage of what gradients need; f32");
  auto* const boost = app->add_option(
      "--boost", options->boost,
      "off: as the model is written, for debugging; O1: the fastest kernels; O2: mixed "
      "precision; O3: also what may change convergence. The output lists the changes");
  if (needed == nullptr) return;
  for (CLI::Option* option : {memory, precision, boost}) option->needs(needed);
}

Status CheckSpeedOptions(const SpeedOptions& options) {
  if (!options.activation_memory.empty())
    MSRT_RETURN_IF_ERROR(
        ParseActivationLimit(options.activation_memory).status().Within("--activation-memory"));
  MSRT_RETURN_IF_ERROR(ParsePrecision(options.precision).status().Within("--precision"));
  return ParseBoost(options.boost).status().Within("--boost");
}

Result<Boost> ApplySpeedOptions(const SpeedOptions& options, const Evaluator* evaluator,
                                const TrainingSettings& settings) {
  if (!options.activation_memory.empty()) {
    MSRT_ASSIGN_OR_RETURN(settings.spec->activations,
                          ParseActivationLimit(options.activation_memory));
    settings.spec->activations.typical = settings.compile->typical;
    settings.spec->activations.evaluator = evaluator;
  }
  MSRT_ASSIGN_OR_RETURN(const Precision precision, ParsePrecision(options.precision));
  MSRT_RETURN_IF_ERROR(ApplyPrecision(precision, settings).Within("--precision mixed"));
  MSRT_ASSIGN_OR_RETURN(const Boost boost, ParseBoost(options.boost));
  MSRT_RETURN_IF_ERROR(ApplyBoost(boost, settings).Within(StrCat("--boost ", options.boost)));
  return boost;
}

void PrintChanges(const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& [name, effect] : changes)
    std::printf("change     %s: %s\n", name.c_str(), effect.c_str());
}

}  // namespace msrt
