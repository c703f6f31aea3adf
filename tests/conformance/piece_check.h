// Checks pieces of one node: its kernel is compiled for the whole node, then bound to random
// pieces, whose inputs and outputs are parts of larger tensors in memory.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/run/piece_runner.h"
#include "tests/conformance/case_module.h"

namespace msrt::testing {

// A tensor inside a larger one, whose other elements are a pattern.
class Embedded {
 public:
  // `margin`: the number of elements around it along each dim but the last, which has them in front
  // and behind too; 0: dense.
  Embedded(const Type& type, int64_t margin);
  void Set(const ConstTensor& t);
  ConstTensor Get() const;
  bool SurroundingsAreUnchanged() const;
  TensorView view() const { return view_; }

 private:
  Type type_;
  Dims outer_, strides_;
  int64_t margin_;
  std::vector<std::byte> bytes_;
  TensorView view_;
};

struct PieceTotals {
  int rows = 0;      // of the op cases
  int pieces = 0;    // computed and compared
  int strided = 0;   // steps that got strides
  int copies = 0;    // steps that were inserted instead
  uint64_t bound = 0, reused = 0;  // kernels
};

// Runs `rounds` random pieces of each output of the module and compares them with the same part of
// `whole`: within `tolerance` of the largest element, or the same bits if it is 0. False if the
// module has no pieces.
bool CheckPieces(const CaseModule& m, std::shared_ptr<const CompiledModel> model,
                 const std::vector<ConstTensor>& whole, double tolerance, int rounds, uint32_t seed,
                 PieceTotals* totals);

}  // namespace msrt::testing
