// How much the outputs of two correct runtimes may differ, by the types that a model computes in.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// The difference of an output is within its tolerance if it is at most `relative` of the output's
// range, at most `absolute`, or at most `rounding` of the output's largest number: numbers within a
// small range are no more exact than their type.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double rounding = 0;
  bool depends_on_data = false;  // the output depends on elements of an input, not only on its dims
};

// Returns a tolerance for each output of the module's first entry. The narrowest type of a value
// between the inputs and the output counts; weights that are stored in fewer bits do not:
//   f64 1e-9, f32 1e-4 (sums in another order), f16 4e-3 and bf16 3e-2 (4 epsilons: every result on
//   the way is rounded), 2 epsilons of the output's largest number where its range is small;
//   quantised to 8 bits 2e-2 (5 of 255 steps), and one step of an output that was quantised itself;
//   integers and truth values must be equal.
std::vector<Tolerance> DefaultTolerances(const Module& module);

}  // namespace msrt
