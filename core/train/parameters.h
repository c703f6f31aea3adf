// Which constants of a model are parameters: weights that training changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/train/training_spec.h"

namespace msrt {

struct Parameter {
  ValueId constant{};  // in the model's main graph
  std::string name;    // of its state slot; unique
  double rate_factor = 1, weight_decay = 0;
  bool is_vector = false;  // of rank 0 or 1: a bias, or a part of a normalisation
};

// Whether the whole name matches; * stands for any text, ? for any character.
bool MatchesPattern(std::string_view name, std::string_view pattern);

// Returns the constants of float types that differentiable nodes read as weights, without those
// that the spec freezes. No weights are: limits of Clip, scales of Resize, running statistics,
// masks, single numbers; what is subtracted or divided by; what is added to inputs or multiplied
// with them for each channel, before the first layer; and tables that are multiplied by, as cosines
// of positions are. Tables that are added are weights: learned positions cannot be told from fixed
// ones. An error names a pattern that matches nothing. Requires a validated graph.
Result<std::vector<Parameter>> FindParameters(const Graph& graph, const TrainingSpec& spec);

}  // namespace msrt
