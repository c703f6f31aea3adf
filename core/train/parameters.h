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

// By graph and input: whether its nodes read the input as a weight, or pass it on to graphs that
// do.
using WeightInputs = std::vector<std::vector<bool>>;
WeightInputs FindWeightInputs(const Module& module);

// Returns the constants of float types that differentiable nodes read as weights, or that are
// passed on as such. Limits of Clip, scales of Resize, running statistics, masks and single numbers
// are no weights. Requires a validated graph.
std::vector<ValueId> FindWeights(const Graph& graph, const WeightInputs& inputs = {});

// Returns the weights of a graph and `passed_on`, without those that the spec freezes. An error
// names a pattern that matches nothing. Requires a validated graph.
Result<std::vector<Parameter>> FindParameters(const Graph& graph, const TrainingSpec& spec,
                                              const std::vector<ValueId>& passed_on = {});

}  // namespace msrt
