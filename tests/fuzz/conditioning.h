// How much the outputs of a graph may differ between two right ways to compute it, estimated by
// computing it again with noise: before every op that rounds, each float input is multiplied by 1 +
// d, |d| a few units in the last place of its type. What no rounding reaches gets no noise, and
// must be the same bit for bit.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt::testing {

// The module with noise; other seeds give other noise.
Module WithNoise(const Module& module, uint64_t seed);

// The elements of a tensor as doubles: floats of all kinds by value, everything else by its bits.
std::vector<double> NumbersOf(const ConstTensor& tensor);

// What is known about one output after the run without noise and some runs with it.
class Tolerance {
 public:
  explicit Tolerance(const ConstTensor& expected);
  void AddNoisy(const ConstTensor& noisy);
  // Empty if `got` is right as far as can be told, else the first difference. NaNs and infinities
  // (of either sign) must stand where they stood in all runs; an element that was of another kind
  // in any of them says nothing and is not compared. The same goes for other dims under noise.
  std::string Difference(const ConstTensor& got) const;
  size_t compared() const;  // elements

 private:
  ConstTensor expected_;
  std::vector<double> values_;
  std::vector<double> spread_;   // by element: the largest deviation
  std::vector<bool> undecided_;  // by element
};

}  // namespace msrt::testing
