// Stores large weights in few bits; the model still computes in f32. Each weight becomes a small
// constant and a node (Cast or DequantizeLinear) that makes it f32 again, which the runtime folds
// when it loads the file.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

struct WeightStorage {
  DType dtype = DType::kNone;  // f16, bf16, i8 or i4; kNone: weights stay as they are
  int64_t block = 0;  // integers: number of neighbours along the input axis that share a scale;
                      // 0: all that belong to one output channel
};

// `name` is "f16", "bf16", "int8" or "int4"; `block` -1 is the default: channels for int8, 32 for
// int4.
Result<WeightStorage> ParseWeightStorage(const std::string& name, int64_t block);

struct StoredWeight {
  std::string name;
  Type type;         // before
  double error = 0;  // the largest, relative to the largest element
};

struct WeightReport {
  std::vector<StoredWeight> stored;                             // the worst first
  std::vector<std::pair<std::string, std::string>> left_alone;  // name and reason
  size_t bytes_before = 0, bytes_after = 0;                     // of all constants

  std::string Text() const;
  std::string Json() const;
};

// Stores the weights of MatMul, Gemm, Conv, ConvTranspose, Gather, RNN, GRU, LSTM and their fused
// forms: f32 tensors of some thousand elements and more. Weights already in fewer bits stay as they
// are. Requires inferred types, and keeps them valid.
Result<WeightReport> StoreWeights(const WeightStorage& storage, Module* module);

}  // namespace msrt
