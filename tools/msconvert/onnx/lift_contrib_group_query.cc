// GroupQueryAttention of the domain com.microsoft: attention with a cache for sequences of
// different lengths, rotary embedding included. The positions of the new rows in the cache depend
// on data, so they are computed by ops.
#include <limits>

#include "tools/msconvert/onnx/contrib_attention.h"

namespace msrt::onnx_import {
namespace {

using Ints = std::vector<int64_t>;

struct GroupQuery {
  enum : size_t {
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kLastKeys,
    kTotal,
    kCos,
    kSin,
    kPositions,
    kScoreBias,
    kFirstUnsupported
  };
  int64_t heads = 0, key_heads = 0;
  ValueId query = kNoValue, key = kNoValue, value = kNoValue;  // packed
  ValueId rows = kNoValue;                                     // how many are new, [1]
  ValueId past_rows = kNoValue;                                // of each sequence, [batch, 1]
  ValueId positions = kNoValue;                                // of the new rows, [batch, rows]
};

// Keys and values follow the query in one tensor if they have no inputs of their own.
Status ReadGroupQuery(NodeLift& n, GroupQuery* g) {
  g->query = n.input(GroupQuery::kQuery), g->key = n.input(GroupQuery::kKey),
  g->value = n.input(GroupQuery::kValue);
  const Type type = n.type(GroupQuery::kQuery);
  if (!type.rank_known || type.rank() != 3)
    return Unsupported("the query must be known to have rank 3");
  if (g->key != kNoValue) return OkStatus();
  const int64_t all = g->heads + 2 * g->key_heads;
  if (!IsKnown(type.dims[2]) || type.dims[2] % all != 0)
    return Unsupported("a packed query needs a known size that its heads divide");
  const int64_t width = type.dims[2] / all;
  const Ints sizes = {g->heads * width, g->key_heads * width, g->key_heads * width};
  MSRT_ASSIGN_OR_RETURN(const auto qkv, n.AddMany("", "Split", {g->query},
                                                  {{"axis", int64_t{2}}, {"split", sizes}}, 3));
  g->query = qkv[0], g->key = qkv[1], g->value = qkv[2];
  return OkStatus();
}

// The new rows come after those that the sequence has already. seqlens_k is the position of the
// last one.
Status FindPositions(NodeLift& n, GroupQuery* g) {
  MSRT_ASSIGN_OR_RETURN(g->rows, DimOf(n, g->query, 1));
  MSRT_ASSIGN_OR_RETURN(const ValueId last,
                        n.Add("Cast", {n.input(GroupQuery::kLastKeys)}, {{"to", DType::kI64}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId column, n.Add("Reshape", {last}, {{"shape", Ints{-1, 1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId total, n.Add("Add", {column, n.Scalar(DType::kI64, 1)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId past, n.Add("Sub", {total, g->rows}));
  // A prompt that is shorter than its row has nothing before it.
  MSRT_ASSIGN_OR_RETURN(g->past_rows, n.Add("Max", {past, n.Scalar(DType::kI64, 0)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId offsets, CountTo(n, g->rows));
  MSRT_ASSIGN_OR_RETURN(g->positions, n.Add("Add", {offsets, g->past_rows}));
  return OkStatus();
}

Status Rotate(NodeLift& n, GroupQuery* g) {
  if (n.Int("do_rotary", 0) == 0) return OkStatus();
  if (!n.has_input(GroupQuery::kCos) || !n.has_input(GroupQuery::kSin))
    return InvalidModel("do_rotary = 1 needs cos_cache and sin_cache");
  const ValueId positions =
      n.has_input(GroupQuery::kPositions) ? n.input(GroupQuery::kPositions) : g->positions;
  const Type table = n.type(GroupQuery::kCos), query = n.type_of(g->query);
  if (!table.rank_known || table.rank() != 2 || !IsKnown(table.dims[1]) ||
      !IsKnown(query.dims[2])) {
    return Unsupported("do_rotary = 1 needs the sizes of the query and of cos_cache");
  }
  const int64_t turned = 2 * table.dims[1], width = query.dims[2] / g->heads;
  const auto rotate = [&](ValueId x, int64_t heads) {
    return n.Add("RotaryEmbedding",
                 {x, n.input(GroupQuery::kCos), n.input(GroupQuery::kSin), positions},
                 {{"num_heads", heads},
                  {"interleaved", n.Int("rotary_interleaved", 0)},
                  {"rotary_embedding_dim", turned == width ? int64_t{0} : turned}});
  };
  MSRT_ASSIGN_OR_RETURN(g->query, rotate(g->query, g->heads));
  MSRT_ASSIGN_OR_RETURN(g->key, rotate(g->key, g->key_heads));
  return OkStatus();
}

// Returns the cache with the new rows after those of the past, which may end before their tensor
// does, as sequences differ in length and a cache may have spare room. `key_positions` are the
// positions of the rows of the result, [keys].
Result<ValueId> Cached(NodeLift& n, const GroupQuery& g, ValueId past, ValueId fresh,
                       ValueId key_positions) {
  MSRT_ASSIGN_OR_RETURN(const ValueId apart, Unpacked(n, fresh, g.key_heads));
  if (past == kNoValue) return apart;
  MSRT_ASSIGN_OR_RETURN(const ValueId room, DimOf(n, past, 2));
  MSRT_ASSIGN_OR_RETURN(const ValueId keys, n.Add("Shape", {key_positions}));
  MSRT_ASSIGN_OR_RETURN(const ValueId missing, n.Add("Sub", {keys, room}));
  const ValueId nothing = n.Constant(ConstTensor::Int64s(Ints{0}));
  MSRT_ASSIGN_OR_RETURN(const ValueId pads,
                        n.Add("Concat", {nothing, missing}, {{"axis", int64_t{0}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId longer, n.Add("Pad", {past, pads}, {{"axes", Ints{2}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId column,
                        n.Add("Unsqueeze", {g.positions}, {{"axes", Ints{1, 3}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId shape, n.Add("Shape", {apart}));
  MSRT_ASSIGN_OR_RETURN(const ValueId indices, n.Add("Expand", {column, shape}));
  return n.Add("ScatterElements", {longer, indices, apart}, {{"axis", int64_t{2}}});
}

// Returns the positions of all keys: as many as the past's tensor has rows, or as all rows
// together.
Result<ValueId> KeyPositions(NodeLift& n, const GroupQuery& g, ValueId past) {
  if (past == kNoValue) return CountTo(n, g.rows);
  MSRT_ASSIGN_OR_RETURN(const ValueId room, DimOf(n, past, 2));
  MSRT_ASSIGN_OR_RETURN(const ValueId total,
                        n.Add("Cast", {n.input(GroupQuery::kTotal)}, {{"to", DType::kI64}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId line, n.Add("Reshape", {total}, {{"shape", Ints{1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId count, n.Add("Max", {room, line}));
  return CountTo(n, count);
}

// Returns a mask [batch, 1, rows, keys]: keys up to the row's own position, and no further back
// than the window.
Result<ValueId> CausalMask(NodeLift& n, const GroupQuery& g, ValueId key_positions) {
  MSRT_ASSIGN_OR_RETURN(const ValueId own,
                        n.Add("Unsqueeze", {g.positions}, {{"axes", Ints{1, 3}}}));
  MSRT_ASSIGN_OR_RETURN(ValueId keep, n.Add("LessOrEqual", {key_positions, own}));
  if (const int64_t window = n.Int("local_window_size", -1); window >= 0) {
    MSRT_ASSIGN_OR_RETURN(const ValueId oldest,
                          n.Add("Sub", {own, n.Scalar(DType::kI64, static_cast<double>(window))}));
    MSRT_ASSIGN_OR_RETURN(const ValueId recent, n.Add("Greater", {key_positions, oldest}));
    MSRT_ASSIGN_OR_RETURN(keep, n.Add("And", {keep, recent}));
  }
  return keep;
}

Status RefuseGroupQueryForms(const NodeLift& n) {
  for (size_t i = GroupQuery::kFirstUnsupported; i < n.input_count(); ++i) {
    if (n.has_input(i))
      return Unsupported("input ", i,
                         " (sinks, scales of caches and norms of heads are not supported)");
  }
  for (const auto& [attr, usual] : {std::pair<const char*, int64_t>{"smooth_softmax", -1},
                                    {"qk_output", 0},
                                    {"causal", 1},
                                    {"sliding_window_cache", 0}}) {
    if (const int64_t value = n.Int(attr, usual); value != usual && value != 0)
      return Unsupported(attr, " = ", value);
  }
  if (n.Int("causal", 1) == 0) return Unsupported("causal = 0");
  for (size_t i : {GroupQuery::kQuery, GroupQuery::kLastKeys, GroupQuery::kTotal}) {
    if (!n.has_input(i)) return InvalidModel("input ", i, " is missing");
  }
  if (n.has_input(GroupQuery::kPastKey) != n.has_input(GroupQuery::kPastValue))
    return InvalidModel("past_key and past_value go together");
  return OkStatus();
}

Status LiftGroupQueryAttention(NodeLift& n) {
  MSRT_RETURN_IF_ERROR(RefuseGroupQueryForms(n));
  GroupQuery g;
  g.heads = n.Int("num_heads", 0), g.key_heads = n.Int("kv_num_heads", 0);
  if (g.heads < 1 || g.key_heads < 1 || g.heads % g.key_heads != 0) {
    return InvalidModel("num_heads = ", g.heads,
                        ", must be a multiple of kv_num_heads = ", g.key_heads);
  }
  MSRT_RETURN_IF_ERROR(ReadGroupQuery(n, &g));
  MSRT_RETURN_IF_ERROR(FindPositions(n, &g));
  MSRT_RETURN_IF_ERROR(Rotate(n, &g));
  MSRT_ASSIGN_OR_RETURN(const ValueId key_positions,
                        KeyPositions(n, g, n.input(GroupQuery::kPastKey)));
  MSRT_ASSIGN_OR_RETURN(const ValueId query, Unpacked(n, g.query, g.heads));
  MSRT_ASSIGN_OR_RETURN(const ValueId key,
                        Cached(n, g, n.input(GroupQuery::kPastKey), g.key, key_positions));
  MSRT_ASSIGN_OR_RETURN(const ValueId value,
                        Cached(n, g, n.input(GroupQuery::kPastValue), g.value, key_positions));
  MSRT_ASSIGN_OR_RETURN(ValueId mask, CausalMask(n, g, key_positions));
  if (n.has_input(GroupQuery::kScoreBias)) {
    const DType dtype = n.type(GroupQuery::kScoreBias).dtype;
    const ValueId never = n.Scalar(dtype, -std::numeric_limits<double>::infinity());
    MSRT_ASSIGN_OR_RETURN(mask, n.Add("Where", {mask, n.input(GroupQuery::kScoreBias), never}));
  }
  AttrList attrs = {{"softcap", n.Float("softcap", 0)}};
  if (const double scale = n.Float("scale", 0); scale != 0) attrs.Set("scale", scale);
  MSRT_ASSIGN_OR_RETURN(const ValueId attended,
                        n.Add("Attention", {query, key, value, mask}, std::move(attrs)));
  MSRT_ASSIGN_OR_RETURN(const ValueId out, Packed(n, attended));
  n.SetOutput(0, out);
  n.SetOutput(1, key);
  n.SetOutput(2, value);
  return OkStatus();
}

constexpr LiftRule kContribGroupQueryLifts[] = {
    {kContribDomain, "GroupQueryAttention", LiftGroupQueryAttention}};

}  // namespace

std::span<const LiftRule> ContribGroupQueryLifts() { return kContribGroupQueryLifts; }

}  // namespace msrt::onnx_import
