// Estimates how much the outputs of a graph may differ between two correct ways to compute it, by
// computing it again with noise: before every op that rounds, each float input is multiplied by 1 +
// d, |d| a few units in the last place of its type. Values that do not depend on rounding get no
// noise, and must be the same bit for bit.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

// Returns the module with noise; the seed determines the noise.
Module WithNoise(const Module& module, uint64_t seed);

// Returns the elements of a tensor as doubles: floats of all kinds by value, everything else by its
// bits.
std::vector<double> NumbersOf(const ConstTensor& tensor);

// The tolerance of one output, from a run without noise and some runs with it.
class Tolerance {
 public:
  explicit Tolerance(const ConstTensor& expected);
  void AddNoisy(const ConstTensor& noisy);
  // Returns the first difference; empty if `got` is within the tolerance. NaNs and infinities (of
  // either sign) must be where they were in all runs; an element that was of another kind in any
  // run is undecided and not compared. The same applies to other dims under noise.
  std::string Difference(const ConstTensor& got) const;
  size_t compared() const;  // elements

 private:
  ConstTensor expected_;
  std::vector<double> values_;
  std::vector<double> spread_;   // by element: the largest deviation
  std::vector<bool> undecided_;  // by element
};

}  // namespace msrt::testing
