// How a model is trained: loss, optimizer, which parameters, and what is done with gradients.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/activation_memory.h"
#include "core/train/losses.h"

namespace msrt {

enum class OptimizerKind : uint8_t {
  kSgd,
  kMomentum,
  kNesterov,
  kRmsProp,
  kAdagrad,
  kAdam,
  kAdamW,
  kLamb,
  kLars,
};
std::string_view OptimizerName(OptimizerKind kind);

// The formulas are those of ops/training_optimizer.cc.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kMomentum;
  double weight_decay = 0;
  // Biases and the scales and shifts of normalisations (parameters of rank 0 and 1) decay too.
  bool decays_vectors = false;
  double momentum = 0.9;  // momentum, nesterov, lars; rmsprop has its own
  double dampening = 0;
  double beta1 = 0.9, beta2 = 0.999;  // adam, adamw, lamb
  std::optional<double> epsilon;      // empty: PyTorch's default of the method
  double alpha = 0.99;                // rmsprop
  double rmsprop_momentum = 0;
  bool centered = false;                   // rmsprop
  double rate_decay = 0, initial_sum = 0;  // adagrad
  double trust = 0.001;                    // lars
};

// Reads "sgd", "momentum[:M]", "nesterov[:M]", "rmsprop[:ALPHA]", "adagrad", "adam[:B1:B2]",
// "adamw[:B1:B2]", "lamb[:B1:B2]" or "lars[:M]".
Result<OptimizerSpec> ParseOptimizer(std::string_view text);

// Parameters whose name matches; patterns have * for any text and ? for any character.
struct ParameterGroup {
  std::string pattern;
  double rate_factor = 1;
  std::optional<double> weight_decay;  // empty: that of the optimizer
};

// Gradients are computed of the loss times a factor, so that small ones do not vanish in f16, and
// divided by it again. A dynamic factor halves when a gradient is not finite, in which case the
// update is skipped, and doubles after `growth_interval` updates without that.
struct LossScale {
  double initial = 1;
  bool dynamic = false;
  double growth = 2, backoff = 0.5;
  int64_t growth_interval = 2000;
};

struct TrainingSpec {
  LossSpec loss;  // reduced to a mean; values of a graph in it are ignored
  // Cross-entropy: the target is a distribution with the shape of the scores, not a class.
  bool target_is_distribution = false;
  std::vector<double> class_weights;  // cross-entropy: one for each class, or none
  size_t output = 0;                  // of the model, that the loss compares with the target
  OptimizerSpec optimizer;
  std::vector<std::string> frozen;     // patterns of parameters that stay constants
  std::vector<ParameterGroup> groups;  // the first that matches counts
  double clip_value = 0;               // limits the elements of gradients; 0: does not
  double clip_norm = 0;                // limits the norm of all gradients together; 0: does not
  int64_t accumulation = 1;            // micro-batches whose gradients make one update
  LossScale loss_scale;
  double average_decay = 0;  // of the moving average of parameters, which eval uses; 0: none
  ActivationLimit activations = {};
  bool reduced_activations = false;    // f32 values are kept for gradients in bf16
  bool centralized_gradients = false;  // of matrices and filters: each output's mean is subtracted
  // In the course of a run more and more parameters stay as they are, those that are used first
  // before all others: from part k / (stages + 1) of the updates on, the first k / (2 stages) of
  // them. Gradients then end earlier.
  int freezing_stages = 0;
};

}  // namespace msrt
