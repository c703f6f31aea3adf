// Attention as products, mask and softmax. MindSpore's own attention is for other devices.
#include <cmath>
#include <limits>

#include "core/graph/constants.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kMask = 3, kPastKey = 4, kPastValue = 5;
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Sizes {
  bool packed = false;
  int64_t query_heads = 0, key_heads = 0, width = 0;
};

Result<Sizes> SizesOf(const NodeLowering& n) {
  for (size_t i : {kQuery, kKey, kValue}) MSRT_RETURN_IF_ERROR(n.NeedRank(i));
  Sizes s;
  s.packed = n.dims(kQuery).rank() == 3;
  s.query_heads = s.packed ? n.op().Int("q_num_heads") : n.dims(kQuery)[1];
  s.key_heads = s.packed ? n.op().Int("kv_num_heads") : n.dims(kKey)[1];
  s.width = n.dims(kQuery).back();
  if (!IsKnown(s.query_heads) || !IsKnown(s.key_heads) || !IsKnown(s.width) ||
      !IsKnown(n.dims(kValue).back())) {
    return Unsupported("the number or the size of its heads is not known before the run");
  }
  if (s.packed) s.width /= s.query_heads;
  return s;
}

// Returns a shape: batch and rows of the tensor, then `rest`.
Arg ShapeOf(NodeLowering& n, const Ref& x, const Dims& leading, const Ints& rest) {
  Args dims;
  for (int i = 0; i < 2; ++i)
    dims.emplace_back(IsKnown(leading[i]) ? Arg(leading[i]) : Arg(n.out().DimOf(x, i)));
  dims.insert(dims.end(), rest.begin(), rest.end());
  return n.out().ShapeTuple(dims);
}

// Converts [batch, rows, heads * width] to [batch, heads, rows, width].
Ref Unpacked(NodeLowering& n, size_t input, bool packed, int64_t heads) {
  const Ref x = n.In(input);
  if (!packed) return x;
  const Ints rest{heads, n.dims(input)[2] / heads};
  return n.Op("Transpose",
              {n.Op("Reshape", {x, ShapeOf(n, x, n.dims(input), rest)}), Ints{0, 2, 1, 3}});
}

Ref Packed(NodeLowering& n, const Ref& x) {
  const Ref turned = n.Op("Transpose", {x, Ints{0, 2, 1, 3}});
  return n.Op("Reshape", {turned, ShapeOf(n, turned, n.result().dims, {n.result().dims[2]})});
}

// Appends the new rows to the cache.
Ref Appended(NodeLowering& n, const Ref& fresh, size_t past) {
  return n.Has(past) ? n.Op("Concat", {n.out().Tuple({n.In(past), fresh}), 2}) : fresh;
}

// Repeats the heads of keys, since one may serve several heads of queries.
Ref Repeated(NodeLowering& n, const Ref& x, const Sizes& s) {
  if (s.query_heads == s.key_heads) return x;
  Ints heads;
  for (int64_t h = 0; h < s.query_heads; ++h) heads.push_back(h / (s.query_heads / s.key_heads));
  return n.Op("Gather", {x, n.IntTensor(heads), 1, 0});
}

Result<ConstTensor> CausalMask(int64_t rows, int64_t total, int64_t past) {
  MSRT_ASSIGN_OR_RETURN(const NewConstant made, MakeConstant(DType::kBool, {rows, total}));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < total; ++j)
      made.bytes[static_cast<size_t>(i * total + j)] = std::byte{j <= i + past};
  }
  return made.tensor;
}

Result<Ref> Masked(NodeLowering& n, const Sizes& s, Ref scores) {
  if (n.op().Int("is_causal") != 0) {
    const int64_t rows = n.dims(kQuery)[s.packed ? 1 : 2], fresh = n.dims(kKey)[s.packed ? 1 : 2];
    const int64_t past = !n.Has(kPastKey)              ? 0
                         : n.type(kPastKey).rank_known ? n.dims(kPastKey)[2]
                                                       : kUnknownDim;
    if (!IsKnown(rows) || !IsKnown(fresh) || !IsKnown(past)) {
      return Unsupported(
          "attribute 'is_causal' = 1, and the number of rows is not known before the run");
    }
    MSRT_ASSIGN_OR_RETURN(const ConstTensor mask, CausalMask(rows, past + fresh, past));
    scores = n.Op("Select", {n.out().Constant(mask), scores, n.Number(kMinusInfinity)});
  }
  if (!n.Has(kMask)) return scores;
  if (n.type(kMask).dtype == DType::kBool)
    return n.Op("Select", {n.In(kMask), scores, n.Number(kMinusInfinity)});
  return n.Op("Add", {scores, n.In(kMask)});
}

Ref Weights(NodeLowering& n, const Ref& scores) {
  if (!n.Has(kMask)) return n.Op("Softmax", {scores, Ints{-1}});
  // A row without visible keys gets zeros, or NaN in msrt.FusedAttention. MindSpore's softmax
  // spoils the rows beside one that is all infinite (seen in 2.10).
  const double lowest = n.dtype() == DType::kF16
                            ? -65504.0
                            : static_cast<double>(std::numeric_limits<float>::lowest());
  const Ref weights = n.Op("Softmax", {n.Op("Maximum", {scores, n.Number(lowest)}), Ints{-1}});
  const double hidden = n.op().domain() == "msrt" ? std::numeric_limits<double>::quiet_NaN() : 0;
  const Ref most = n.Op("ReduceMax", {scores, Ints{-1}, true});
  return n.Op("Select",
              {n.Op("Equal", {most, n.Number(kMinusInfinity)}), n.Number(hidden), weights});
}

Status LowerAttention(NodeLowering& n) {
  MSRT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(n));
  const Ref query = Unpacked(n, kQuery, s.packed, s.query_heads);
  const Ref key = Appended(n, Unpacked(n, kKey, s.packed, s.key_heads), kPastKey);
  const Ref value = Appended(n, Unpacked(n, kValue, s.packed, s.key_heads), kPastValue);
  const double scale =
      n.op().Has("scale") ? n.op().Float("scale") : 1 / std::sqrt(static_cast<double>(s.width));
  const Ref raw = n.Op("BatchMatMul",
                       {n.Op("Mul", {query, n.Number(scale)}), Repeated(n, key, s), false, true});
  const double cap = n.op().Float("softcap");
  const Ref capped =
      cap > 0 ? n.Op("Mul", {n.Op("Tanh", {n.Op("RealDiv", {raw, n.Number(cap)})}), n.Number(cap)})
              : raw;
  MSRT_ASSIGN_OR_RETURN(const Ref masked, Masked(n, s, capped));
  const Ref weights = Weights(n, masked);
  const Ref alike =
      n.type(kValue).dtype == n.dtype() ? value : n.Op("Cast", {value, TypeIdOf(n.dtype())});
  Ref result = n.Op("BatchMatMul", {weights, Repeated(n, alike, s), false, false});
  if (s.packed) result = Packed(n, result);
  if (n.Wants(0)) n.SetOutput(0, result);
  if (n.Wants(1)) n.SetOutput(1, key);
  if (n.Wants(2)) n.SetOutput(2, value);
  const Ref* const stages[] = {&raw, &capped, &masked, &weights};
  if (n.Wants(3)) n.SetOutput(3, *stages[n.op().Int("qk_matmul_output_mode")]);
  return OkStatus();
}

constexpr Lowerer kAttentionLowerers[] = {{"Attention", LowerAttention},
                                          {"msrt.FusedAttention", LowerAttention}};

}  // namespace

std::span<const Lowerer> AttentionLowerers() { return kAttentionLowerers; }

}  // namespace msrt::mindir_export
