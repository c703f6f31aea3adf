// Seeded choices, and random tensors, for random graphs.
#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "core/graph/tensor.h"

namespace msrt::testing {

class Choices {
 public:
  explicit Choices(uint64_t seed) : engine_(seed) {}
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  size_t Below(size_t count) { return static_cast<size_t>(engine_() % count); }
  bool OneIn(int64_t chances) { return Between(1, chances) == 1; }
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // in [0, 1)
  template <typename List>
  const auto& Of(const List& list) {
    return list[Below(std::size(list))];
  }
  // A type of the set; requires that it is not empty.
  DType TypeOf(DTypeSet set);

 private:
  std::mt19937_64 engine_;
};

// Floats in [-2, 2), some of them whole; small integers; bools.
ConstTensor RandomTensor(Choices& choices, DType dtype, const Dims& dims);
// Integers (i32 or i64) in [low, high].
ConstTensor RandomIndices(Choices& choices, DType dtype, const Dims& dims, int64_t low,
                          int64_t high);
// Numbers of a float type.
ConstTensor FloatTensor(DType dtype, const Dims& dims, std::span<const double> values);

}  // namespace msrt::testing
