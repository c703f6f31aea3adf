#include "core/region/resolved_space.h"

#include <gtest/gtest.h>

#include <random>

namespace msrt {
namespace {

using Kind = DimMap::Kind;

// The elements of one index, from the definition in the header.
bool TouchesByDefinition(const DimMap& m, int64_t i, int64_t x) {
  switch (m.kind) {
    case Kind::kFixed:
      return m.fixed.Contains({x, x + 1});
    case Kind::kAffine:
      return x == m.offset + m.step * i;
    case Kind::kWindow:
      for (int64_t t = 0; t < m.kernel; ++t) {
        if (x == m.step * i + m.dilation * t + m.offset) return true;
      }
      return false;
    case Kind::kTransposedWindow:
      for (int64_t t = 0; t < m.kernel; ++t) {
        if (i == m.step * x + m.dilation * t + m.offset) return true;
      }
      return false;
    case Kind::kBlock:
      return (i + m.offset) / m.divisor == x / m.size;
    case Kind::kFunction:
      return false;
  }
  return false;
}

Interval HullByDefinition(const DimMap& m, Interval axis) {
  Interval hull;
  for (int64_t i = axis.begin; i < axis.end; ++i) {
    for (int64_t x = 0; x < m.extent; ++x) {
      if (TouchesByDefinition(m, i, x)) hull = Hull(hull, {x, x + 1});
    }
  }
  return hull;
}

class RandomMaps {
 public:
  DimMap Next(int64_t axis_extent) {
    const int64_t extent = Pick(1, 12), step = Pick(1, 3);
    switch (random_() % 4) {
      case 0:
        return DimMap::Affine(0, Pick(-3, 14), random_() % 2 == 0 ? step : -step, extent);
      case 1:
        return DimMap::Window(0, step, Pick(1, 2), Pick(step, step + 2), Pick(0, 2), extent);
      case 2:
        return DimMap::TransposedWindow(0, step, 1, Pick(step, step + 2), Pick(-2, 3), extent);
      default: {
        const int64_t size = Pick(1, 3), divisor = Pick(1, 3), offset = Pick(0, divisor - 1);
        const int64_t blocks = (axis_extent - 1 + offset) / divisor + 1;
        return DimMap::Block(0, size, size * blocks, divisor, offset);
      }
    }
  }
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  Interval Part(int64_t extent) {
    const int64_t a = Pick(0, extent - 1), b = Pick(0, extent - 1);
    return {std::min(a, b), std::max(a, b) + 1};
  }

 private:
  std::mt19937 random_{3};
};

TEST(DimMap, TouchesTheElementsOfItsFormula) {
  RandomMaps maps;
  for (int round = 0; round < 20000; ++round) {
    const int64_t extent = maps.Pick(1, 10);
    const DimMap map = maps.Next(extent);
    const Interval axis = maps.Part(extent), touched = map.Touched(axis);
    const Interval defined = HullByDefinition(map, axis);
    ASSERT_TRUE(touched.Contains(defined)) << round;
    ASSERT_TRUE((Interval{0, map.extent}.Contains(touched))) << round;
    // At a border, holes between taps may make the interval larger than what is read.
    const bool dense = map.kind != Kind::kAffine && map.dilation == 1;
    if (dense && !defined.empty()) {
      ASSERT_EQ(touched, defined) << round;
    }
  }
}

TEST(DimMap, InverseIsTheSmallestIntervalThatTouchesTheElements) {
  RandomMaps maps;
  for (int round = 0; round < 20000; ++round) {
    const int64_t extent = maps.Pick(1, 10);
    const DimMap map = maps.Next(extent);
    const bool one_to_one =
        map.kind == Kind::kAffine || (map.kind == Kind::kBlock && map.divisor == 1);
    if (!one_to_one) continue;
    const Interval elements = maps.Part(map.extent);
    const Interval got = map.Inverse(elements, extent);
    Interval expected;
    for (int64_t i = 0; i < extent; ++i) {
      if (!Intersect(map.Touched({i, i + 1}), elements).empty())
        expected = Hull(expected, {i, i + 1});
    }
    ASSERT_EQ(got, expected) << round << ": " << StrCat(got, " ", expected);
  }
}

TEST(DimMap, InteriorTouchesOnlyOwnedElementsAndCannotGrow) {
  RandomMaps maps;
  for (int round = 0; round < 20000; ++round) {
    const int64_t extent = maps.Pick(1, 10);
    const DimMap map = maps.Next(extent);
    const Interval owned = maps.Part(map.extent), got = map.Interior(owned, extent);
    ASSERT_TRUE(got.empty() || owned.Contains(map.Touched(got))) << round;
    ASSERT_TRUE((Interval{0, extent}.Contains(got))) << round;
    const auto needs_more = [&](int64_t i) {
      const Interval touched = map.Touched({i, i + 1});
      return touched.empty() || !owned.Contains(touched);
    };
    if (got.empty()) {
      for (int64_t i = 0; i < extent; ++i) ASSERT_TRUE(needs_more(i)) << round << " at " << i;
      continue;
    }
    ASSERT_TRUE(got.begin == 0 || needs_more(got.begin - 1)) << round;
    ASSERT_TRUE(got.end == extent || needs_more(got.end)) << round;
  }
}

// Two dims that follow one axis, an axis that is summed and one that must not be cut.
TEST(ResolvedSpace, PieceForIsWholeAlongReducedAxes) {
  ResolvedSpace space;
  space.axes.Add(AxisKind::kParallel, 8);
  space.axes.Add(AxisKind::kReduce, 5, Monoid::kSum);
  space.axes.Add(AxisKind::kWhole, 3);
  space.inputs = {TensorMap::Same(Dims{8, 5, 3})};
  space.outputs = {TensorMap::Same(Dims{8})};
  Box box;
  box.push_back({2, 4});
  EXPECT_EQ(StrCat(*PieceFor(space, 0, box)), "[2, 4) x [0, 5) x [0, 3)");
  EXPECT_EQ(StrCat(RequiredInputs(space, 0, box)[0]), "[2, 4) x [0, 5) x [0, 3)");
  box[0] = {3, 3};
  EXPECT_FALSE(PieceFor(space, 0, box).has_value());

  Box owned = Box::Whole(Dims{8, 5, 3});
  owned[0] = {1, 6};
  EXPECT_EQ(StrCat(*InteriorPiece(space, std::span(&owned, 1))), "[1, 6) x [0, 5) x [0, 3)");
  owned[1] = {0, 4};  // a sum of the first four would be a partial result
  EXPECT_FALSE(InteriorPiece(space, std::span(&owned, 1)).has_value());
}

}  // namespace
}  // namespace msrt
