#include "core/passes/dim_product.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace msrt {
namespace {

// First numbers of open dims and of terms; symbols are numbered from zero.
constexpr uint64_t kOpenDims = uint64_t{1} << 40, kTerms = uint64_t{1} << 48;

}  // namespace

DimProduct DimProduct::Number(int64_t number) {
  DimProduct p;
  p.known_ = true;
  p.factor_ = number;
  return p;
}

DimProduct DimProduct::Dim(int64_t dim, ValueId value, int axis) {
  if (IsKnown(dim)) return Number(dim);
  DimProduct p = Number(1);
  p.count_ = 1;
  p.dims_[0] = IsSymbol(dim)
                   ? SymbolOf(dim)
                   : kOpenDims + uint64_t{IndexOf(value)} * kMaxRank + static_cast<uint64_t>(axis);
  return p;
}

DimProduct DimProduct::Term(size_t number) {
  DimProduct p = Number(1);
  p.count_ = 1;
  p.dims_[0] = kTerms + number;
  return p;
}

std::optional<size_t> DimProduct::term() const {
  const bool single = known_ && count_ == 1 && factor_ == 1 && dims_[0] >= kTerms;
  return single ? std::optional(static_cast<size_t>(dims_[0] - kTerms)) : std::nullopt;
}

std::optional<int64_t> DimProduct::dim() const {
  if (const auto n = number()) return *n >= 0 ? n : std::nullopt;
  const bool symbol = known_ && count_ == 1 && factor_ == 1 && dims_[0] < kOpenDims;
  return symbol ? std::optional(SymbolDim(static_cast<uint32_t>(dims_[0]))) : std::nullopt;
}

bool DimProduct::operator==(const DimProduct& other) const {
  return known_ && other.known_ && factor_ == other.factor_ &&
         std::equal(dims_, dims_ + count_, other.dims_, other.dims_ + other.count_);
}

DimProduct DimProduct::Times(const DimProduct& other) const {
  DimProduct p = *this;
  if (!known_ || !other.known_ || count_ + other.count_ > kMaxFactors ||
      !CheckedMul(factor_, other.factor_, &p.factor_))
    return Unknown();
  if (p.factor_ == 0) return Number(0);
  std::merge(dims_, dims_ + count_, other.dims_, other.dims_ + other.count_, p.dims_);
  p.count_ += other.count_;
  return p;
}

DimProduct DimProduct::Plus(const DimProduct& other, int64_t sign) const {
  int64_t addend;
  if (!known_ || !other.known_ || !CheckedMul(other.factor_, sign, &addend)) return Unknown();
  if (other.factor_ == 0) return *this;
  DimProduct p = factor_ == 0 ? other : *this;
  if (!std::equal(p.dims_, p.dims_ + p.count_, other.dims_, other.dims_ + other.count_))
    return Unknown();
  if (!CheckedAdd(factor_, addend, &p.factor_)) return Unknown();
  return p.factor_ == 0 ? Number(0) : p;
}

DimProduct DimProduct::Over(const DimProduct& other) const {
  if (!known_ || !other.known_ || other.factor_ <= 0 || factor_ % other.factor_ != 0)
    return Unknown();
  if (!std::includes(dims_, dims_ + count_, other.dims_, other.dims_ + other.count_))
    return Unknown();
  DimProduct p = Number(factor_ / other.factor_);
  p.count_ = static_cast<int>(
      std::set_difference(dims_, dims_ + count_, other.dims_, other.dims_ + other.count_, p.dims_) -
      p.dims_);
  return p;
}

}  // namespace msrt
