// Inputs to run a model with when nobody gives any: usual sizes, seeded random numbers.
#pragma once

#include <map>
#include <random>
#include <string>

#include "core/graph/graph.h"

namespace msrt {

// "1x3x224x224"; nothing at all is a single number.
Result<Dims> ParseShape(const std::string& text);
std::string ShapeText(const Dims& dims);

// Dims to run an input at: what the user says, what the model says; open ones get 1 in front, 224 in images, 128 elsewhere.
Result<Dims> DimsFor(const Value& input, const std::map<std::string, Dims>& given);

// Normal numbers; for integers small token numbers, which any table that the input looks up has; ones for masks.
Result<ConstTensor> RandomInput(const Graph& graph, ValueId input, const Dims& dims, std::mt19937_64& random);

}  // namespace msrt
