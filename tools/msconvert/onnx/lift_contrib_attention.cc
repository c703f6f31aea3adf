// Rules for attention in the domain com.microsoft: Attention, MultiHeadAttention and
// RotaryEmbedding become ONNX's Attention and RotaryEmbedding, with their many forms of masks as
// one that is added to the scores.
#include "tools/msconvert/onnx/contrib_attention.h"

namespace msrt::onnx_import {

Result<ValueId> DimOf(NodeLift& n, ValueId value, int64_t axis) {
  return n.Add("Shape", {value}, {{"start", axis}, {"end", axis + 1}});
}

Result<ValueId> CountTo(NodeLift& n, ValueId count) {
  MSRT_ASSIGN_OR_RETURN(const ValueId limit,
                        n.Add("Squeeze", {count}, {{"axes", std::vector<int64_t>{0}}}));
  return n.Add("Range", {n.Scalar(DType::kI64, 0), limit, n.Scalar(DType::kI64, 1)});
}

Result<ValueId> Packed(NodeLift& n, ValueId value) {
  MSRT_ASSIGN_OR_RETURN(const ValueId turned,
                        n.Add("Transpose", {value}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
  return n.Add("Reshape", {turned}, {{"shape", std::vector<int64_t>{0, 0, -1}}});
}

Result<ValueId> Unpacked(NodeLift& n, ValueId value, int64_t heads) {
  MSRT_ASSIGN_OR_RETURN(
      const ValueId apart,
      n.Add("Reshape", {value}, {{"shape", std::vector<int64_t>{0, 0, heads, -1}}}));
  return n.Add("Transpose", {apart}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
}

namespace {

using Ints = std::vector<int64_t>;

Result<ValueId> Part(NodeLift& n, ValueId value, int64_t axis, int64_t index) {
  return n.Add("Gather", {value, n.Scalar(DType::kI64, static_cast<double>(index))},
               {{"axis", axis}});
}

// Returns 0 where `keep` is true and the filter value elsewhere.
Result<ValueId> FilteredUnless(NodeLift& n, ValueId keep, DType dtype) {
  return n.Add("Where", {keep, n.Scalar(dtype, 0),
                         n.Scalar(dtype, n.Float("mask_filter_value", -10000.0f))});
}

// ---- Attention, MultiHeadAttention --------------------------------------------------------------

// Converts the mask of keys from its forms: lengths [batch], [batch, keys], or [batch, rows, keys].
Result<ValueId> KeyMask(NodeLift& n, ValueId mask, const AttentionParts& parts) {
  const Type type = n.type_of(mask);
  if (!type.rank_known) return Unsupported("the rank of the mask must be known");
  ValueId keep = kNoValue;
  if (type.rank() == 1) {
    const Type query = n.type_of(parts.query);
    if (!query.rank_known || type.dims[0] != query.dims[0] || type.dims[0] == kUnknownDim) {
      return Unsupported("a mask of shape ", type.dims,
                         "; [batch], [batch, keys] and [batch, rows, keys] are supported");
    }
    MSRT_ASSIGN_OR_RETURN(ValueId keys, DimOf(n, parts.key, 1));
    if (parts.past_key != kNoValue) {
      MSRT_ASSIGN_OR_RETURN(const ValueId past, DimOf(n, parts.past_key, 2));
      MSRT_ASSIGN_OR_RETURN(keys, n.Add("Add", {keys, past}));
    }
    MSRT_ASSIGN_OR_RETURN(const ValueId places, CountTo(n, keys));
    MSRT_ASSIGN_OR_RETURN(const ValueId lengths, n.Add("Cast", {mask}, {{"to", DType::kI64}}));
    MSRT_ASSIGN_OR_RETURN(const ValueId column,
                          n.Add("Unsqueeze", {lengths}, {{"axes", Ints{1, 2, 3}}}));
    MSRT_ASSIGN_OR_RETURN(keep, n.Add("Less", {places, column}));
  } else if (type.rank() == 2 || type.rank() == 3) {
    MSRT_ASSIGN_OR_RETURN(
        const ValueId wide,
        n.Add("Unsqueeze", {mask}, {{"axes", type.rank() == 2 ? Ints{1, 2} : Ints{1}}}));
    MSRT_ASSIGN_OR_RETURN(keep, n.Add("Greater", {wide, n.Scalar(type.dtype, 0)}));
  } else {
    return Unsupported("a mask of rank ", type.rank());
  }
  return FilteredUnless(n, keep, n.type_of(parts.query).dtype);
}

// Adds an Attention in its packed form, with outputs 1 and 2 if they are used.
Result<std::vector<ValueId>> Attend(NodeLift& n, const AttentionParts& parts, int64_t heads,
                                    ValueId mask, bool caches) {
  AttrList attrs = {{"q_num_heads", heads},
                    {"kv_num_heads", heads},
                    {"is_causal", int64_t{n.Int("unidirectional", 0) != 0}}};
  if (const double scale = n.Float("scale", 0); scale != 0) attrs.Set("scale", scale);
  return n.AddMany("", "Attention",
                   {parts.query, parts.key, parts.value, mask, parts.past_key, parts.past_value},
                   std::move(attrs), caches ? 3 : 1);
}

}  // namespace

Status LiftAttentionOfParts(NodeLift& n, const AttentionParts& parts, size_t present_output) {
  const int64_t heads = n.Int("num_heads", 0);
  if (heads < 1) return InvalidModel("num_heads = ", heads, ", must be at least 1");
  ValueId mask = parts.bias;
  if (parts.key_mask != kNoValue) {
    MSRT_ASSIGN_OR_RETURN(const ValueId filter, KeyMask(n, parts.key_mask, parts));
    mask = filter;
    if (parts.bias != kNoValue) {
      MSRT_ASSIGN_OR_RETURN(mask, n.Add("Add", {parts.bias, filter}));
    }
  }
  const bool joined = n.op() != "MultiHeadAttention";
  const bool caches =
      n.wants_output(present_output) || (!joined && n.wants_output(present_output + 1));
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> out, Attend(n, parts, heads, mask, caches));
  n.SetOutput(0, out[0]);
  if (!caches) return OkStatus();
  if (!joined) {
    n.SetOutput(present_output, out[1]);
    n.SetOutput(present_output + 1, out[2]);
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId key, n.Add("Unsqueeze", {out[1]}, {{"axes", Ints{0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId value, n.Add("Unsqueeze", {out[2]}, {{"axes", Ints{0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId present,
                        n.Add("Concat", {key, value}, {{"axis", int64_t{0}}}));
  n.SetOutput(present_output, present);
  return OkStatus();
}

Status SetJoinedPast(NodeLift& n, ValueId past, AttentionParts* parts) {
  if (past == kNoValue) return OkStatus();
  if (n.Int("past_present_share_buffer", 0) != 0)
    return Unsupported("past_present_share_buffer = 1");
  MSRT_ASSIGN_OR_RETURN(parts->past_key, Part(n, past, 0, 0));
  MSRT_ASSIGN_OR_RETURN(parts->past_value, Part(n, past, 0, 1));
  return OkStatus();
}

Status SplitProjection(NodeLift& n, ValueId projection, const std::vector<int64_t>& sizes,
                       AttentionParts* parts) {
  AttrList attrs = {{"axis", int64_t{-1}}};
  if (sizes.empty()) attrs.Set("num_outputs", int64_t{3});
  else attrs.Set("split", sizes);
  MSRT_ASSIGN_OR_RETURN(const auto qkv, n.AddMany("", "Split", {projection}, std::move(attrs), 3));
  parts->query = qkv[0], parts->key = qkv[1], parts->value = qkv[2];
  return OkStatus();
}

namespace {

Status LiftAttention(NodeLift& n) {
  enum : size_t { kInput, kWeights, kBias, kMask, kPast, kScoreBias, kPastLength };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(2));
  if (n.Int("do_rotary", 0) != 0) return Unsupported("do_rotary = 1");
  MSRT_ASSIGN_OR_RETURN(ValueId projection, n.Add("MatMul", {n.input(kInput), n.input(kWeights)}));
  if (n.has_input(kBias)) {
    MSRT_ASSIGN_OR_RETURN(projection, n.Add("Add", {projection, n.input(kBias)}));
  }
  AttentionParts parts;
  MSRT_RETURN_IF_ERROR(SplitProjection(n, projection, n.Ints("qkv_hidden_sizes"), &parts));
  MSRT_RETURN_IF_ERROR(SetJoinedPast(n, n.input(kPast), &parts));
  parts.key_mask = n.input(kMask);
  parts.bias = n.input(kScoreBias);
  return LiftAttentionOfParts(n, parts, 1);
}

// Returns one of the tensors in [batch, rows, heads, count, width], packed.
Result<ValueId> OneOfPacked(NodeLift& n, ValueId value, int64_t index) {
  MSRT_ASSIGN_OR_RETURN(const ValueId one, Part(n, value, 3, index));
  return n.Add("Reshape", {one}, {{"shape", Ints{0, 0, -1}}});
}

// Reads query, keys and values in any of their forms.
Status ReadMultiHead(NodeLift& n, AttentionParts* parts) {
  const auto rank = [&](size_t i) {
    return n.has_input(i) && n.type(i).rank_known ? n.type(i).rank() : 0;
  };
  if (rank(0) == 5) {
    for (int64_t i = 0; i < 3; ++i) {
      MSRT_ASSIGN_OR_RETURN(*(i == 0   ? &parts->query
                              : i == 1 ? &parts->key
                                       : &parts->value),
                            OneOfPacked(n, n.input(0), i));
    }
    return OkStatus();
  }
  parts->query = n.input(0);
  if (rank(0) != 3) return Unsupported("the rank of the query must be known to be 3 or 5");
  if (rank(1) == 5) {
    MSRT_ASSIGN_OR_RETURN(parts->key, OneOfPacked(n, n.input(1), 0));
    MSRT_ASSIGN_OR_RETURN(parts->value, OneOfPacked(n, n.input(1), 1));
    return OkStatus();
  }
  if (rank(1) != rank(2) || (rank(1) != 3 && rank(1) != 4))
    return Unsupported("the ranks of key and value must be known to be 3 or 4");
  parts->key = n.input(1), parts->value = n.input(2);
  if (rank(1) == 4) {
    MSRT_ASSIGN_OR_RETURN(parts->key, Packed(n, parts->key));
    MSRT_ASSIGN_OR_RETURN(parts->value, Packed(n, parts->value));
  }
  return OkStatus();
}

// The biases of query, key and value are one list.
Status AddProjectionBias(NodeLift& n, ValueId bias, AttentionParts* parts) {
  Ints sizes;
  for (ValueId v : {parts->query, parts->key, parts->value}) {
    const Type type = n.type_of(v);
    if (!type.rank_known || !IsKnown(type.dims[2]))
      return Unsupported("a bias needs the sizes of query, key and value");
    sizes.push_back(type.dims[2]);
  }
  MSRT_ASSIGN_OR_RETURN(
      const auto each, n.AddMany("", "Split", {bias}, {{"axis", int64_t{0}}, {"split", sizes}}, 3));
  MSRT_ASSIGN_OR_RETURN(parts->query, n.Add("Add", {parts->query, each[0]}));
  MSRT_ASSIGN_OR_RETURN(parts->key, n.Add("Add", {parts->key, each[1]}));
  MSRT_ASSIGN_OR_RETURN(parts->value, n.Add("Add", {parts->value, each[2]}));
  return OkStatus();
}

Status LiftMultiHeadAttention(NodeLift& n) {
  enum : size_t {
    kQuery,
    kKey,
    kValue,
    kBias,
    kMask,
    kScoreBias,
    kPastKey,
    kPastValue,
    kPastLength,
    kIndirection
  };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(1));
  if (n.has_input(kPastLength) || n.has_input(kIndirection))
    return Unsupported("past_sequence_length and cache_indirection");
  AttentionParts parts;
  MSRT_RETURN_IF_ERROR(ReadMultiHead(n, &parts));
  if (n.has_input(kBias)) MSRT_RETURN_IF_ERROR(AddProjectionBias(n, n.input(kBias), &parts));
  parts.key_mask = n.input(kMask), parts.bias = n.input(kScoreBias);
  parts.past_key = n.input(kPastKey), parts.past_value = n.input(kPastValue);
  return LiftAttentionOfParts(n, parts, 1);
}

// ---- RotaryEmbedding ----------------------------------------------------------------------------

// Packed rows do not determine the number of heads; the tables do if they rotate the whole head.
Result<int64_t> HeadsOf(const NodeLift& n, const Type& x, const Type& table) {
  if (const int64_t heads = n.Int("num_heads", 0); heads > 0) return heads;
  if (!x.rank_known || !table.rank_known || table.rank() != 2 || !IsKnown(x.dims[2]) ||
      !IsKnown(table.dims[1]) || table.dims[1] < 1) {
    return Unsupported("num_heads is not given and does not follow from known shapes");
  }
  return x.dims[2] / (2 * table.dims[1]);
}

// Returns positions [batch, rows] from the position of the first row [1].
Result<ValueId> PositionsFrom(NodeLift& n, ValueId x, ValueId first, int64_t row_axis) {
  MSRT_ASSIGN_OR_RETURN(const ValueId batch, DimOf(n, x, 0));
  MSRT_ASSIGN_OR_RETURN(const ValueId rows, DimOf(n, x, row_axis));
  MSRT_ASSIGN_OR_RETURN(const ValueId places, CountTo(n, rows));
  MSRT_ASSIGN_OR_RETURN(const ValueId shifted, n.Add("Add", {places, first}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shape,
                        n.Add("Concat", {batch, rows}, {{"axis", int64_t{0}}}));
  return n.Add("Expand", {shifted, shape});
}

Status LiftRotaryEmbedding(NodeLift& n) {
  enum : size_t { kX, kPositions, kCos, kSin };
  MSRT_RETURN_IF_ERROR(n.RequireInputs(4));
  if (n.Int("is_packed_batching", 0) != 0) return Unsupported("is_packed_batching = 1");
  if (n.Float("scale", 1) != 1) return Unsupported("scale = ", n.Float("scale", 1));
  const Type x = n.type(kX), positions = n.type(kPositions);
  if (!x.rank_known || !positions.rank_known)
    return Unsupported("the ranks of the inputs must be known");
  AttrList attrs = {{"interleaved", n.Int("interleaved", 0)},
                    {"rotary_embedding_dim", n.Int("rotary_embedding_dim", 0)}};
  if (x.rank() == 3) {
    MSRT_ASSIGN_OR_RETURN(const int64_t heads, HeadsOf(n, x, n.type(kCos)));
    attrs.Set("num_heads", heads);
  }
  ValueId places = n.input(kPositions);
  if (positions.rank() == 1) {
    MSRT_ASSIGN_OR_RETURN(places, PositionsFrom(n, n.input(kX), places, x.rank() == 3 ? 1 : 2));
  }
  MSRT_ASSIGN_OR_RETURN(
      const ValueId y, n.Add("RotaryEmbedding", {n.input(kX), n.input(kCos), n.input(kSin), places},
                             std::move(attrs)));
  n.SetOutput(0, y);
  return OkStatus();
}

constexpr LiftRule kContribAttentionLifts[] = {
    {kContribDomain, "Attention", LiftAttention},
    {kContribDomain, "MultiHeadAttention", LiftMultiHeadAttention},
    {kContribDomain, "RotaryEmbedding", LiftRotaryEmbedding},
};

}  // namespace

std::span<const LiftRule> ContribAttentionLifts() { return kContribAttentionLifts; }

}  // namespace msrt::onnx_import
