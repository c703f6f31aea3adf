// A dim, or an element of a list of dims, as far as it is known before a run: a product of a number
// and of dims that only the run knows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace msrt {

// number * dim * dim ..., or nothing known at all.
class DimProduct {
 public:
  static DimProduct Unknown() { return DimProduct(); }
  static DimProduct Number(int64_t number);
  // The dim of a type: a number, a symbol, or an open dim that is named by where it stands.
  static DimProduct Dim(int64_t dim, ValueId value, int axis);
  // A quantity that is no product of dims, such as the sum of two; the caller numbers them.
  static DimProduct Term(size_t number);

  bool known() const { return known_; }
  std::optional<int64_t> number() const {
    return known_ && count_ == 0 ? std::optional(factor_) : std::nullopt;
  }
  // The number of the term, where it is one term and nothing else.
  std::optional<size_t> term() const;
  // The dim as types write it, where it is a number or one symbol.
  std::optional<int64_t> dim() const;
  // A product of dims and a number that is not negative is never negative.
  bool IsNeverNegative() const { return known_ && factor_ >= 0; }
  // Equal in every run. What is not known equals nothing.
  bool operator==(const DimProduct& other) const;

  DimProduct Times(const DimProduct& other) const;
  DimProduct Plus(const DimProduct& other, int64_t sign) const;
  // Where the division is exact in every run in which the divisor is not zero.
  DimProduct Over(const DimProduct& other) const;

 private:
  static constexpr int kMost = 6;
  bool known_ = false;
  int64_t factor_ = 0;
  int count_ = 0;
  uint64_t dims_[kMost] = {};  // sorted
};

using DimProducts = std::vector<DimProduct>;

}  // namespace msrt
