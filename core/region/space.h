// The iteration space of an op: the axes along which its work can be cut.
//   parallel  pieces are independent and read their own part of the inputs
//   window    pieces are independent but read overlapping parts (halos)
//   reduce    pieces have partial results, combined with the monoid
//   whole     must not be cut
//
// A piece that is cut along reduce axes computes a partial result: a tensor for each output of the
// node, of the type and dims of its box of the output. The monoid says how two of them combine to
// the partial result of both pieces; with all pieces combined it is the result. Sums, products,
// maxima, minima and log-sum-exps combine element by element. The others combine output 0 and 1
// together, and may need the size of a piece, which is the product of its extents along the reduce
// axes. core/region/monoid.h has their formulas.
#pragma once

#include <cstdint>

#include "core/region/box.h"

namespace msrt {

enum class AxisKind : uint8_t { kParallel, kWindow, kReduce, kWhole };
enum class Monoid : uint8_t {
  kNone,
  kSum,
  kProduct,
  kMax,
  kMin,
  kLogSumExp,  // log(exp(a) + exp(b))
  kMoments,    // outputs: mean and variance of as many elements as the piece has
  kSoftmax,    // outputs: mean weighted by exp(score), and the log-sum-exp of the scores
};

struct Axis {
  AxisKind kind = AxisKind::kWhole;
  int64_t extent = 0;
  Monoid monoid = Monoid::kNone;
};

class IterationSpace {
 public:
  int rank() const { return rank_; }
  const Axis& operator[](int i) const { return axes_[static_cast<size_t>(i)]; }
  void Add(AxisKind kind, int64_t extent, Monoid monoid = Monoid::kNone) {
    MSRT_CHECK(rank_ < Box::kMaxAxes);
    axes_[static_cast<size_t>(rank_++)] = {kind, extent, monoid};
  }
  Box Whole() const {
    Box b;
    for (int i = 0; i < rank_; ++i) b.push_back({0, (*this)[i].extent});
    return b;
  }

 private:
  std::array<Axis, Box::kMaxAxes> axes_{};
  int rank_ = 0;
};

}  // namespace msrt
