// Reduce axes of iteration spaces: every op row that has one is computed in parts, and the partial
// results, joined with the axis' monoid, must equal the result of the whole. Floats may differ by
// the rounding of the partial results; integers may not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "core/base/half.h"
#include "core/region/monoid.h"
#include "ops/resolve_space.h"
#include "tests/conformance/case_node.h"

namespace msrt::testing {
namespace {

template <typename T>
T Join(Monoid monoid, T a, T b) {
  switch (monoid) {
    case Monoid::kSum:
      return static_cast<T>(a + b);
    case Monoid::kProduct:
      return static_cast<T>(a * b);
    case Monoid::kMax:
      return std::isnan(static_cast<double>(a)) || a > b ? a : b;
    case Monoid::kMin:
      return std::isnan(static_cast<double>(a)) || a < b ? a : b;
    case Monoid::kLogSumExp:
      return static_cast<T>(LogSumExp(static_cast<double>(a), static_cast<double>(b)));
    case Monoid::kMoments:
    case Monoid::kSoftmax:
    case Monoid::kNone:
      break;
  }
  return a;
}

double EpsilonOf(DType dtype) {
  return dtype == DType::kF16    ? 0x1p-10
         : dtype == DType::kBF16 ? 0x1p-7
         : dtype == DType::kF32  ? 0x1p-23
                                 : 0x1p-52;
}

template <typename T>
T Load(const ConstTensor& t, size_t i) {
  T value;
  std::memcpy(&value, t.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}
double At(const ConstTensor& t, size_t i) {
  if (t.dtype == DType::kF64) return Load<double>(t, i);
  if (t.dtype == DType::kF32) return static_cast<double>(Load<float>(t, i));
  if (t.dtype == DType::kF16) return static_cast<double>(static_cast<float>(Load<Half>(t, i)));
  return static_cast<double>(static_cast<float>(Load<BFloat16>(t, i)));
}

// Empty if `got` is within some roundings of `expected`, at the magnitude of what was joined.
std::string Differs(double got, double expected, double epsilon, double magnitude) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return "";
  const double bound = 16 * epsilon * (magnitude + std::abs(expected));
  if (std::abs(got - expected) <= bound && !std::isinf(bound)) return "";
  return StrCat("joined ", got, ", whole ", expected);
}

// Signed integers wrap as unsigned ones do.
template <typename T>
T JoinIntegers(Monoid monoid, T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (monoid == Monoid::kSum || monoid == Monoid::kProduct)
    return static_cast<T>(Join<uint64_t>(monoid, static_cast<U>(a), static_cast<U>(b)));
  return Join(monoid, a, b);
}

struct Element {
  double value = 0, magnitude = 0;  // the joined value, and the sum of what was joined
};

// Joined parts of one output.
class Joined {
 public:
  explicit Joined(Monoid monoid) : monoid_(monoid) {}

  void Add(const ConstTensor& part) {
    const auto n = static_cast<size_t>(part.dims.elements());
    if (!started_) integers_ = part, floats_.resize(n);
    for (size_t i = 0; i < n; ++i) AddElement(part, i);
    started_ = true;
  }

  std::string DifferenceFrom(const ConstTensor& whole) const {
    if (!IsFloat(whole.dtype))
      return std::ranges::equal(integers_.bytes, whole.bytes) ? "" : "integers differ";
    // Maxima and minima do not round.
    const bool exact = monoid_ == Monoid::kMax || monoid_ == Monoid::kMin;
    for (size_t i = 0; i < floats_.size(); ++i) {
      const std::string wrong = Differs(floats_[i].value, At(whole, i),
                                        exact ? 0 : EpsilonOf(whole.dtype), floats_[i].magnitude);
      if (!wrong.empty()) return StrCat("element ", i, ": ", wrong);
    }
    return "";
  }

 private:
  template <typename T>
  void JoinElement(const ConstTensor& part, size_t i) {
    const T joined = JoinIntegers<T>(monoid_, Load<T>(integers_, i), Load<T>(part, i));
    std::memcpy(const_cast<std::byte*>(integers_.bytes.data()) + i * sizeof(T), &joined, sizeof(T));
  }
  void AddElement(const ConstTensor& part, size_t i) {
    if (IsFloat(part.dtype)) {
      const double value = At(part, i);
      Element& e = floats_[i];
      e.value = started_ ? Join(monoid_, e.value, value) : value;
      e.magnitude += std::abs(value);
      return;
    }
    if (!started_) return;
    switch (part.dtype) {
      case DType::kI8:
        return JoinElement<int8_t>(part, i);
      case DType::kU8:
        return JoinElement<uint8_t>(part, i);
      case DType::kI16:
        return JoinElement<int16_t>(part, i);
      case DType::kU16:
        return JoinElement<uint16_t>(part, i);
      case DType::kI32:
        return JoinElement<int32_t>(part, i);
      case DType::kU32:
        return JoinElement<uint32_t>(part, i);
      case DType::kI64:
        return JoinElement<int64_t>(part, i);
      case DType::kU64:
        return JoinElement<uint64_t>(part, i);
      case DType::kBool:
        return JoinElement<uint8_t>(part, i);
      default:
        ADD_FAILURE() << "partial results of type " << StrCat(part.dtype);
    }
  }

  Monoid monoid_;
  bool started_ = false;
  ConstTensor integers_;
  std::vector<Element> floats_;
};

// Joined parts of a node whose outputs 0 and 1 combine together.
class JoinedPair {
 public:
  explicit JoinedPair(Monoid monoid) : monoid_(monoid) {}

  // `elements` is the number of elements of the part along the reduce axes.
  void Add(const std::vector<ConstTensor>& part, int64_t elements) {
    const auto n = static_cast<size_t>(part[0].dims.elements());
    moments_.resize(n), means_.resize(n), magnitude_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const double first = At(part[0], i), second = At(part[1], SecondOf(part, i));
      if (monoid_ == Monoid::kMoments) {
        moments_[i] = Combine(moments_[i], {static_cast<double>(elements), first, second});
        magnitude_[i] += std::abs(first) + first * first + second;
      } else {
        means_[i] = Combine(means_[i], {first, second});
        // A weight is as precise as its logarithm.
        if (!std::isinf(second)) magnitude_[i] += std::abs(first) * (1 + std::abs(second));
      }
    }
  }

  std::string DifferenceFrom(const std::vector<ConstTensor>& whole) const {
    for (size_t i = 0; i < magnitude_.size(); ++i) {
      const bool moments = monoid_ == Monoid::kMoments;
      const double first = moments ? moments_[i].mean : means_[i].mean,
                   second = moments ? moments_[i].variance : means_[i].log_weight;
      const size_t s = SecondOf(whole, i);
      // The first output may be less precise than the second, which its parts are joined by.
      std::string wrong = Differs(first, At(whole[0], i), EpsilonOf(whole[0].dtype), magnitude_[i]);
      if (wrong.empty())
        wrong = Differs(second, At(whole[1], s), EpsilonOf(whole[1].dtype),
                        moments ? magnitude_[i] : 1);
      if (!wrong.empty()) return StrCat("element ", i, ": ", wrong);
    }
    return "";
  }

 private:
  // The element of output 1 that belongs to element i of output 0: of the same index, or the head
  // and row of an attention whose result is [batch, heads, rows, width] or packed as [batch, rows,
  // heads * width].
  size_t SecondOf(const std::vector<ConstTensor>& outputs, size_t i) const {
    if (monoid_ == Monoid::kMoments) return i;
    const Dims &result = outputs[0].dims, &heads = outputs[1].dims;
    const auto width =
        static_cast<size_t>(result.elements() / std::max<int64_t>(1, heads.elements()));
    if (result.rank() == 4) return i / width;
    const auto h = static_cast<size_t>(heads[1]), rows = static_cast<size_t>(heads[2]);
    const size_t head = i / width % h, row = i / (width * h) % rows;
    return (i / (width * h * rows) * h + head) * rows + row;
  }

  Monoid monoid_;
  std::vector<Moments> moments_;
  std::vector<WeightedMean> means_;
  std::vector<double> magnitude_;
};

int64_t ReducedElements(const IterationSpace& axes, const Box& part) {
  int64_t elements = 1;
  for (int a = 0; a < axes.rank(); ++a)
    elements *= axes[a].kind == AxisKind::kReduce ? part[a].size() : 1;
  return elements;
}

// Cuts the reduce axes at random positions into a grid of parts, and the other axes to one box.
std::vector<Box> RandomParts(std::mt19937& random, const IterationSpace& axes) {
  std::vector<Box> parts{axes.Whole()};
  for (int a = 0; a < axes.rank(); ++a) {
    const int64_t extent = axes[a].extent;
    if (extent < 2 || axes[a].kind == AxisKind::kWhole) continue;
    const int64_t at = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(extent - 1));
    if (axes[a].kind != AxisKind::kReduce) {
      const Interval kept = random() % 2 == 0 ? Interval{0, at} : Interval{at, extent};
      for (Box& part : parts) part[a] = kept;
      continue;
    }
    const size_t count = parts.size();
    for (size_t p = 0; p < count; ++p) {
      Box second = parts[p];
      parts[p][a] = {0, at};
      second[a] = {at, extent};
      parts.push_back(second);
    }
  }
  return parts;
}

Monoid MonoidOf(const IterationSpace& axes) {
  Monoid monoid = Monoid::kNone;
  for (int a = 0; a < axes.rank(); ++a) {
    if (axes[a].kind != AxisKind::kReduce) continue;
    EXPECT_TRUE(monoid == Monoid::kNone || monoid == axes[a].monoid) << "axes of two monoids";
    monoid = axes[a].monoid;
  }
  return monoid;
}

// Such an output (the log_prob of a loss) has a part for each part of the work, and no partial
// results.
bool FollowsReduceAxis(const ResolvedSpace& space, size_t output) {
  for (const DimMap& dim : space.outputs[output].dims) {
    if (dim.axis >= 0 && space.axes[dim.axis].kind == AxisKind::kReduce) return true;
  }
  return false;
}

TEST(PartialResults, JoinToTheWhole) {
  std::mt19937 random(5);
  std::set<std::string> ops;
  int rows = 0, joined_parts = 0;
  for (const OpCase& c : AllOpCases()) {
    SCOPED_TRACE(c.name);
    CaseNode node = NodeOf(c);
    ASSERT_NE(node.def, nullptr);
    ASSERT_TRUE(node.Infer().ok());
    const OpView view = node.View();
    const auto space = ResolveSpace(*node.def, view);
    if (!space.ok() || MonoidOf(space->axes) == Monoid::kNone) continue;
    auto whole = CaseNode(node).Run();
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    for (int round = 0; round < 4; ++round) {
      const std::vector<Box> parts = RandomParts(random, space->axes);
      if (parts.size() < 2) break;
      const Monoid monoid = MonoidOf(space->axes);
      const bool pair = monoid == Monoid::kMoments || monoid == Monoid::kSoftmax;
      std::vector<Joined> joined(whole->size(), Joined(monoid));
      JoinedPair joined_pair(monoid);
      std::vector<Box> outputs = OutputBoxes(*space, parts[0]);
      for (const Box& part : parts) {
        SCOPED_TRACE(StrCat("part ", part));
        auto piece = CutPiece(node, *space, part);
        ASSERT_TRUE(piece.ok()) << piece.status().message();
        auto got = piece->node.Run();
        ASSERT_TRUE(got.ok()) << got.status().message();
        if (pair) joined_pair.Add(*got, ReducedElements(space->axes, part));
        for (size_t o = 0; !pair && o < got->size(); ++o) {
          if (FollowsReduceAxis(*space, o)) {
            ASSERT_EQ(Difference((*got)[o], CutOut((*whole)[o], piece->outputs[o]), 0, 0), "");
          } else {
            ASSERT_EQ(piece->outputs[o], outputs[o]);
            joined[o].Add((*got)[o]);
          }
        }
      }
      if (pair) {
        std::vector<ConstTensor> cut;
        for (size_t o = 0; o < whole->size(); ++o) cut.push_back(CutOut((*whole)[o], outputs[o]));
        ASSERT_EQ(joined_pair.DifferenceFrom(cut), "");
      }
      for (size_t o = 0; !pair && o < joined.size(); ++o) {
        if (FollowsReduceAxis(*space, o)) continue;
        ASSERT_EQ(joined[o].DifferenceFrom(CutOut((*whole)[o], outputs[o])), "") << "output " << o;
      }
      joined_parts += static_cast<int>(parts.size());
      if (round == 0) ++rows, ops.insert(c.op);
    }
  }
  RecordProperty("rows", rows);
  RecordProperty("parts", joined_parts);
  for (std::string_view op :
       {"Conv", "ConvTranspose", "MatMul", "Gemm", "FusedMatMul", "Einsum", "ReduceSum",
        "ReduceMax", "ReduceProd", "GlobalAveragePool", "GlobalMaxPool", "MatMulInteger",
        "ConvInteger", "ReduceMean", "ReduceLogSumExp", "Moments", "AttentionPart"})
    EXPECT_TRUE(ops.contains(std::string(op))) << op;
  EXPECT_GT(rows, 50);
}

}  // namespace
}  // namespace msrt::testing
