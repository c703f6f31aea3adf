// The dims of a tensor: at most 8 of them, held inline, copied like a number.
// A dim >= 0 is known. A negative one is not: kUnknownDim has no name; SymbolDim(k) is the k-th
// named symbol of the module and has the same size wherever it appears.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/base/status.h"

namespace msrt {

inline constexpr int kMaxRank = 8;
inline constexpr int64_t kUnknownDim = INT64_MIN;
// No tensor has more elements than this, so that products of dims never overflow, even in bits.
inline constexpr int64_t kMaxElements = int64_t{1} << 56;

inline constexpr int64_t SymbolDim(uint32_t symbol) { return -1 - int64_t{symbol}; }
inline constexpr bool IsKnown(int64_t dim) { return dim >= 0; }
inline constexpr bool IsSymbol(int64_t dim) { return dim < 0 && dim != kUnknownDim; }
inline constexpr uint32_t SymbolOf(int64_t dim) { return static_cast<uint32_t>(-1 - dim); }

class Dims {
 public:
  constexpr Dims() = default;
  Dims(std::initializer_list<int64_t> dims)
      : Dims(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Dims(std::span<const int64_t> dims) {
    MSRT_CHECK(dims.size() <= kMaxRank);
    rank_ = static_cast<int8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), dims_.begin());
  }
  static Dims Filled(int rank, int64_t value) {
    Dims d;
    for (int i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  int rank() const { return rank_; }
  size_t size() const { return static_cast<size_t>(rank_); }
  bool empty() const { return rank_ == 0; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  int64_t* begin() { return dims_.data(); }
  int64_t* end() { return dims_.data() + rank_; }
  int64_t back() const { return dims_[static_cast<size_t>(rank_ - 1)]; }
  // Requires rank() < kMaxRank.
  void push_back(int64_t d) {
    MSRT_CHECK(rank_ < kMaxRank);
    dims_[static_cast<size_t>(rank_++)] = d;
  }
  void insert(int at, int64_t d) {
    push_back(d);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(int at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --rank_;
  }
  operator std::span<const int64_t>() const { return {dims_.data(), size()}; }  // NOLINT

  bool known() const { return std::all_of(begin(), end(), IsKnown); }
  // The product; 1 for rank 0. Requires known() and a product that was checked to fit
  // (CheckedProduct, where the dims enter).
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : *this) n *= d;
    return n;
  }
  // Product of dims [from, to).
  int64_t product(int from, int to) const {
    int64_t n = 1;
    for (int i = from; i < to; ++i) n *= dims_[static_cast<size_t>(i)];
    return n;
  }

  bool operator==(const Dims& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int8_t rank_ = 0;
};

// "[2, 3, ?, s0]": unknown dims as '?', symbols as s<number>.
inline void AppendTo(std::string* out, const Dims& dims) {
  out->push_back('[');
  for (int i = 0; i < dims.rank(); ++i) {
    if (i != 0) out->append(", ");
    if (IsKnown(dims[i])) AppendTo(out, dims[i]);
    else if (IsSymbol(dims[i])) StrAppend(out, "s", SymbolOf(dims[i]));
    else out->push_back('?');
  }
  out->push_back(']');
}

// Row-major strides in elements. Requires known().
inline Dims RowMajorStrides(const Dims& dims) {
  Dims strides = dims;
  int64_t step = 1;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

}  // namespace msrt
