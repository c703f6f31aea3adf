// Large weights stored small and computed in f32: each becomes a constant in few bits and a node
// (Cast or DequantizeLinear) that makes it f32 again, which the runtime folds when it loads the
// file.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

struct WeightStorage {
  DType dtype = DType::kNone;  // f16, bf16, i8 or i4; kNone: weights stay as they are
  int64_t block = 0;  // integers: so many neighbours along the input axis share a scale; 0: all
                      // that make one output channel
};

// "f16", "bf16", "int8", "int4", and a block or -1 for the usual one: channels for int8, 32 for
// int4.
Result<WeightStorage> ParseWeightStorage(const std::string& name, int64_t block);

struct StoredWeight {
  std::string name;
  Type type;         // as it was
  double error = 0;  // the largest, relative to the largest element
};

struct WeightReport {
  std::vector<StoredWeight> stored;                             // the worst first
  std::vector<std::pair<std::string, std::string>> left_alone;  // name and reason
  size_t bytes_before = 0, bytes_after = 0;                     // of all constants

  std::string Text() const;
  std::string Json() const;
};

// Stores what MatMul, Gemm, Conv, ConvTranspose, Gather, RNN, GRU, LSTM and their fused forms use
// as weights, f32 of some thousand elements and more. What already is in fewer bits is not touched.
// Requires inferred types; they hold afterwards too.
Result<WeightReport> StoreWeights(const WeightStorage& storage, Module* module);

}  // namespace msrt
