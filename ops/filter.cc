// Ops that select a part of their data: NonZero, Compress, Unique. The sizes of their outputs
// depend on the data.
#include "ops/filter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/half.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

// ---- elements of any type -----------------------------------------------------------------------

template <typename T>
T LoadAt(const TensorView& x, int64_t i) {
  return static_cast<const T*>(x.data)[i];
}

uint64_t BitsAt(const TensorView& x, int64_t i) {
  switch (BitsOf(x.dtype)) {
    case 8:
      return LoadAt<uint8_t>(x, i);
    case 16:
      return LoadAt<uint16_t>(x, i);
    case 32:
      return LoadAt<uint32_t>(x, i);
    default:
      return LoadAt<uint64_t>(x, i);
  }
}

double FloatAt(const TensorView& x, int64_t i) {
  switch (x.dtype) {
    case DType::kF64:
      return LoadAt<double>(x, i);
    case DType::kF32:
      return LoadAt<float>(x, i);
    case DType::kF16:
      return float{LoadAt<Half>(x, i)};
    default:
      return float{LoadAt<BFloat16>(x, i)};
  }
}

// Returns a number that orders like the element, so that all types share one comparison.
uint64_t SortKey(const TensorView& x, int64_t i) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  if (IsFloat(x.dtype)) {
    const double value = FloatAt(x, i);
    if (value != value) return std::numeric_limits<uint64_t>::max();
    const uint64_t bits = std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  const uint64_t bits = BitsAt(x, i);
  if (!kSignedTypes.Has(x.dtype)) return bits;
  const int unused = 64 - BitsOf(x.dtype);
  return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused) ^ kSign;
}

// Returns all keys, slice after slice.
std::vector<uint64_t> SortKeys(const TensorView& x, int axis) {
  std::vector<uint64_t> keys(static_cast<size_t>(x.elements()));
  if (axis == kAllElements) {
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = SortKey(x, static_cast<int64_t>(i));
    return keys;
  }
  const int64_t outer = x.dims.product(0, axis), count = x.dims[axis],
                inner = x.dims.product(axis + 1, x.dims.rank());
  size_t next = 0;
  for (int64_t slice = 0; slice < count; ++slice) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i)
        keys[next++] = SortKey(x, (o * count + slice) * inner + i);
    }
  }
  return keys;
}

}  // namespace

std::vector<int64_t> NonZeroOffsets(const TensorView& x) {
  const int width = BitsOf(x.dtype);
  const uint64_t all = ~uint64_t{0} >> (64 - width);
  const uint64_t mask = IsFloat(x.dtype) ? all >> 1 : all;  // without the sign of a float
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < x.elements(); ++i) {
    if ((BitsAt(x, i) & mask) != 0) offsets.push_back(i);
  }
  return offsets;
}

std::vector<int64_t> TrueIndices(const TensorView& condition) { return NonZeroOffsets(condition); }

DistinctSlices FindDistinct(const TensorView& x, int axis, bool sorted) {
  const int64_t count = axis == kAllElements ? x.elements() : x.dims[axis];
  const std::vector<uint64_t> keys = SortKeys(x, axis);
  const size_t width = count == 0 ? 0 : keys.size() / static_cast<size_t>(count);
  const auto slice = [&](int64_t i) {
    return keys.begin() + static_cast<ptrdiff_t>(i * static_cast<int64_t>(width));
  };
  const auto end_of = [&](int64_t i) { return slice(i) + static_cast<ptrdiff_t>(width); };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(slice(a), end_of(a), slice(b), end_of(b));
  });

  DistinctSlices out;
  out.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && std::equal(slice(order[i]), end_of(order[i]), slice(order[i - 1]));
    if (!same) {
      out.first.push_back(order[i]);  // the sort is stable: this is the first occurrence
      out.counts.push_back(0);
    }
    ++out.counts.back();
    out.inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(out.first.size()) - 1;
  }
  if (sorted) return out;

  std::vector<size_t> by_first(out.first.size());
  std::iota(by_first.begin(), by_first.end(), size_t{0});
  std::sort(by_first.begin(), by_first.end(),
            [&](size_t a, size_t b) { return out.first[a] < out.first[b]; });
  std::vector<int64_t> place(by_first.size());
  DistinctSlices reordered;
  for (size_t i = 0; i < by_first.size(); ++i) {
    place[by_first[i]] = static_cast<int64_t>(i);
    reordered.first.push_back(out.first[by_first[i]]);
    reordered.counts.push_back(out.counts[by_first[i]]);
  }
  for (int64_t i : out.inverse) reordered.inverse.push_back(place[static_cast<size_t>(i)]);
  return reordered;
}

namespace {

// ---- NonZero ------------------------------------------------------------------------------------

Status InferNonZero(InferContext& c) {
  c.SetOutput(0, DType::kI64,
              {c.input(0).rank_known ? c.input(0).rank() : kUnknownDim, kUnknownDim});
  return OkStatus();
}

Status SizeNonZero(const OpView& op, std::span<Type> outputs) {
  outputs[0].dims[1] = static_cast<int64_t>(NonZeroOffsets(ViewOf(*op.constant(0))).size());
  return OkStatus();
}

// ---- Compress -----------------------------------------------------------------------------------

Status InferCompress(InferContext& c) {
  const Type &x = c.input(0), &condition = c.input(1);
  MSRT_RETURN_IF_ERROR(CheckRank(c, 1, 1));
  const bool flat = !c.op().Has("axis");
  if (!x.rank_known) {
    if (flat) c.SetOutput(0, x.dtype, {kUnknownDim});
    else c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  int64_t extent = kUnknownDim, chosen = kUnknownDim;
  if (c.op().constant(1) != nullptr)
    chosen = static_cast<int64_t>(TrueIndices(ViewOf(*c.op().constant(1))).size());
  Dims dims{chosen};
  if (flat) {
    if (x.concrete()) extent = x.elements();
  } else {
    MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), x.rank()));
    extent = x.dims[axis];
    dims = x.dims;
    dims[axis] = chosen;
  }
  if (condition.concrete() && IsKnown(extent) && condition.dims[0] > extent) {
    return InvalidModel("the condition has ", condition.dims[0], " elements, at most ", extent,
                        " can be chosen from");
  }
  c.SetOutput(0, x.dtype, dims);
  return OkStatus();
}

Status SizeCompress(const OpView& op, std::span<Type> outputs) {
  if (!outputs[0].rank_known) return OkStatus();
  const int axis = op.Has("axis")
                       ? static_cast<int>(op.Int("axis") < 0 ? op.Int("axis") + outputs[0].rank()
                                                             : op.Int("axis"))
                       : 0;
  outputs[0].dims[axis] = static_cast<int64_t>(TrueIndices(ViewOf(*op.constant(1))).size());
  return OkStatus();
}

// ---- Unique -------------------------------------------------------------------------------------

void SetUnique(const Type& x, const Dims& y, int64_t slices, int64_t distinct, InferContext* c) {
  c->SetOutput(0, x.dtype, y);
  c->SetOutput(1, DType::kI64, {distinct});
  c->SetOutput(2, DType::kI64, {slices});
  c->SetOutput(3, DType::kI64, {distinct});
}

Status InferUnique(InferContext& c) {
  const Type& x = c.input(0);
  const bool flat = !c.op().Has("axis");
  if (flat) {
    SetUnique(x, {kUnknownDim}, x.concrete() ? x.elements() : kUnknownDim, kUnknownDim, &c);
    return OkStatus();
  }
  SetUnique(x, {}, kUnknownDim, kUnknownDim, &c);
  if (!x.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(c.op().Int("axis"), x.rank()));
  Dims y = x.dims;
  y[axis] = kUnknownDim;
  SetUnique(x, y, x.dims[axis], kUnknownDim, &c);
  return OkStatus();
}

Status SizeUnique(const OpView& op, std::span<Type> outputs) {
  const TensorView x = ViewOf(*op.constant(0));
  int axis = kAllElements;
  if (op.Has("axis")) {
    MSRT_ASSIGN_OR_RETURN(axis, NormalizeAxis(op.Int("axis"), x.dims.rank()));
  }
  const auto distinct = static_cast<int64_t>(FindDistinct(x, axis, true).first.size());
  outputs[0].dims[axis == kAllElements ? 0 : axis] = distinct;
  if (outputs.size() > 1) outputs[1].dims[0] = distinct;
  if (outputs.size() > 3) outputs[3].dims[0] = distinct;
  return OkStatus();
}

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kCompressAttrs[] = {{.name = "axis"}};
constexpr AttrDef kUniqueAttrs[] = {
    {.name = "axis"}, {.name = "sorted", .default_int = 1, .min_int = 0, .max_int = 1}};

constexpr ParamDef kNonZeroInputs[] = {{"x", kComputeTypes}};
constexpr ParamDef kCompressInputs[] = {{"input", kComputeTypes}, {"condition", kBoolType}};

constexpr DataSizesDef kNonZeroSizes{.inputs = 1, .fill = SizeNonZero};
constexpr DataSizesDef kCompressSizes{.inputs = 2, .fill = SizeCompress};
constexpr DataSizesDef kUniqueSizes{.inputs = 1, .fill = SizeUnique};

constexpr OpDef kFilterOps[] = {
    {.name = "NonZero", .inputs = kNonZeroInputs, .infer = InferNonZero, .sizes = &kNonZeroSizes},
    {.name = "Compress",
     .attrs = kCompressAttrs,
     .inputs = kCompressInputs,
     .infer = InferCompress,
     .sizes = &kCompressSizes,
     .grad = GradCompress},
    {.name = "Unique",
     .attrs = kUniqueAttrs,
     .inputs = kNonZeroInputs,
     .max_outputs = 4,
     .infer = InferUnique,
     .sizes = &kUniqueSizes},
};

}  // namespace

std::span<const OpDef> FilterOps() { return kFilterOps; }

}  // namespace msrt
