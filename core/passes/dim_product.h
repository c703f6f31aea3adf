// Symbolic value of a dim, or of an element of a list of dims: a product of a number and of dims
// that only the run knows. Shape passes compute with it (symbolic_shapes.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// number * dim * dim ..., or unknown.
class DimProduct {
 public:
  static DimProduct Unknown() { return DimProduct(); }
  static DimProduct Number(int64_t number);
  // The dim of a type: a number, a symbol, or an open dim, which is identified by value and axis.
  static DimProduct Dim(int64_t dim, ValueId value, int axis);
  // A quantity that is not a product of dims, such as a sum of two. The caller numbers the terms.
  static DimProduct Term(size_t number);

  bool known() const { return known_; }
  std::optional<int64_t> number() const {
    return known_ && count_ == 0 ? std::optional(factor_) : std::nullopt;
  }
  // The number of the term, if the product is a single term.
  std::optional<size_t> term() const;
  // The dim in the encoding of types, if it is a number or one symbol.
  std::optional<int64_t> dim() const;
  // A product of dims and a number that is not negative is never negative.
  bool IsNeverNegative() const { return known_ && factor_ >= 0; }
  // Whether both are equal in every run. An unknown product equals nothing.
  bool operator==(const DimProduct& other) const;

  DimProduct Times(const DimProduct& other) const;
  DimProduct Plus(const DimProduct& other, int64_t sign) const;
  // Returns the quotient if the division is exact in every run in which the divisor is not zero,
  // else unknown.
  DimProduct Over(const DimProduct& other) const;

 private:
  static constexpr int kMaxFactors = 6;
  bool known_ = false;
  int64_t factor_ = 0;
  int count_ = 0;
  uint64_t dims_[kMaxFactors] = {};  // sorted
};

using DimProducts = std::vector<DimProduct>;

}  // namespace msrt
