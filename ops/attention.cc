// Scaled dot-product attention as one op: softmax(scale * Q K^T, capped and masked) V for every
// head, with a key/value cache and groups of query heads that share one key/value head.
// msrt.FusedAttention differs in rows that may see no key. msrt.AttentionPart, without a cache, can
// also be cut along the keys: its second output is what combines the parts.
//
// Q, K and V are [batch, heads, rows, width], or packed as [batch, rows, heads * width] with the
// number of heads in attributes. The iteration space is batch, key/value heads (each with its group
// of query heads), query rows, and for AttentionPart keys. For the causal mask, a piece must know
// how many rows its first query is behind its first key: the local attribute row_offset.
#include "core/base/checked_math.h"
#include "ops/expansions.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"

namespace msrt {
namespace {

enum Input : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue };
enum Output : size_t { kResult, kPresentKey, kPresentValue, kScores };
constexpr size_t kLogWeights = 1;  // of AttentionPart

struct Heads {
  int64_t batch = kUnknownDim, heads = kUnknownDim, rows = kUnknownDim, width = kUnknownDim;
};

struct Shapes {
  bool packed = false;
  Heads query, key, value;
  int64_t past = 0, total = kUnknownDim;  // rows of the cache, and of all keys

  // Query heads that share one key/value head. Requires concrete types.
  int64_t group() const { return key.heads == 0 ? 1 : query.heads / key.heads; }
  Dims score_dims() const { return {query.batch, query.heads, query.rows, total}; }
};

// ---- inference ----------------------------------------------------------------------------------

// Requires that both are equal; the known one replaces the other.
Status Unify(int64_t* a, int64_t* b, std::string_view what) {
  MSRT_ASSIGN_OR_RETURN(*a, SameDim(*a, *b, what));
  *b = *a;
  return OkStatus();
}

// `heads` is the attribute's value, 0 if it is absent.
Status ReadHeads(const Type& type, bool packed, int64_t heads, std::string_view name, Heads* out) {
  if (heads > 0) out->heads = heads;
  if (!type.rank_known) return OkStatus();
  out->batch = type.dims[0];
  if (!packed) {
    int64_t dim = type.dims[1];
    MSRT_RETURN_IF_ERROR(
        Unify(&out->heads, &dim, StrCat("heads of ", name, " in its attribute and its shape")));
    out->rows = type.dims[2], out->width = type.dims[3];
    return OkStatus();
  }
  out->rows = type.dims[1];
  const int64_t hidden = type.dims[2];
  if (!IsKnown(hidden)) return OkStatus();
  if (hidden % heads != 0)
    return InvalidModel("the last dim of ", name, " is ", hidden, ", must be a multiple of its ",
                        heads, " heads");
  out->width = hidden / heads;
  return OkStatus();
}

// Returns the common rank of Q, K and V, or 0 if it is not known.
Result<int> RankOf(const OpView& op) {
  int rank = 0;
  for (size_t i : {kQuery, kKey, kValue}) {
    const Type& t = op.input(i);
    if (!t.rank_known) continue;
    if (t.rank() != 3 && t.rank() != 4)
      return InvalidModel("input ", i, " has shape ", t.dims, ", must have rank 3 or 4");
    if (rank != 0 && rank != t.rank())
      return InvalidModel("Q, K and V must have one rank, input ", i, " has shape ", t.dims);
    rank = t.rank();
  }
  return rank;
}

Status ReadPast(const OpView& op, size_t input, Heads* fresh, int64_t* past) {
  const Type& t = op.input(input);
  if (!t.rank_known) return OkStatus();
  if (t.rank() != 4)
    return InvalidModel("input ", input, " has shape ", t.dims, ", must have rank 4");
  int64_t batch = t.dims[0], heads = t.dims[1], rows = t.dims[2], width = t.dims[3];
  MSRT_RETURN_IF_ERROR(
      Unify(&fresh->batch, &batch, "batch of the cache and of what is added to it"));
  MSRT_RETURN_IF_ERROR(
      Unify(&fresh->heads, &heads, "heads of the cache and of what is added to it"));
  MSRT_RETURN_IF_ERROR(
      Unify(&fresh->width, &width, "head size of the cache and of what is added to it"));
  return Unify(past, &rows, "rows of past_key and past_value");
}

Status CheckGroups(const Shapes& s) {
  if (!IsKnown(s.query.heads) || !IsKnown(s.key.heads) || s.query.heads == s.key.heads)
    return OkStatus();
  if (s.key.heads != 0 && s.query.heads % s.key.heads == 0) return OkStatus();
  return InvalidModel("Q has ", s.query.heads, " heads, must be a multiple of the ", s.key.heads,
                      " heads of K and V");
}

Status ReadCache(const OpView& op, Shapes* s) {
  if (op.has_input(kPastKey) != op.has_input(kPastValue))
    return InvalidModel("past_key and past_value must be given together");
  if (!op.has_input(kPastKey)) return OkStatus();
  s->past = kUnknownDim;
  MSRT_RETURN_IF_ERROR(ReadPast(op, kPastKey, &s->key, &s->past));
  return ReadPast(op, kPastValue, &s->value, &s->past);
}

Status AddCacheRows(bool has_cache, Shapes* s) {
  s->total = has_cache ? kUnknownDim : s->key.rows;
  if (!has_cache || !IsKnown(s->past) || !IsKnown(s->key.rows)) return OkStatus();
  if (CheckedAdd(s->past, s->key.rows, &s->total)) return OkStatus();
  return InvalidModel("the cache of ", s->past, " rows cannot take ", s->key.rows, " more");
}

// Reads all shapes and checks them against each other. Requires rank 3 or 4, from RankOf.
Result<Shapes> ShapesOf(const OpView& op, int rank) {
  Shapes s;
  s.packed = rank == 3;
  const int64_t query_heads = op.Int("q_num_heads"), key_heads = op.Int("kv_num_heads");
  if (s.packed && (query_heads == 0 || key_heads == 0)) {
    return InvalidModel("q_num_heads and kv_num_heads must be given when Q, K and V have rank 3");
  }
  MSRT_RETURN_IF_ERROR(ReadHeads(op.input(kQuery), s.packed, query_heads, "Q", &s.query));
  MSRT_RETURN_IF_ERROR(ReadHeads(op.input(kKey), s.packed, key_heads, "K", &s.key));
  MSRT_RETURN_IF_ERROR(ReadHeads(op.input(kValue), s.packed, key_heads, "V", &s.value));
  MSRT_RETURN_IF_ERROR(ReadCache(op, &s));
  MSRT_RETURN_IF_ERROR(Unify(&s.key.batch, &s.value.batch, "batch of K and V"));
  MSRT_RETURN_IF_ERROR(Unify(&s.query.batch, &s.key.batch, "batch of Q and K"));
  MSRT_RETURN_IF_ERROR(Unify(&s.key.heads, &s.value.heads, "heads of K and V"));
  MSRT_RETURN_IF_ERROR(Unify(&s.key.rows, &s.value.rows, "rows of K and V"));
  MSRT_RETURN_IF_ERROR(Unify(&s.query.width, &s.key.width, "head size of Q and K"));
  s.value.batch = s.key.batch;
  MSRT_RETURN_IF_ERROR(AddCacheRows(op.has_input(kPastKey), &s));
  MSRT_RETURN_IF_ERROR(CheckGroups(s));
  return s;
}

Result<Shapes> ShapesOf(const OpView& op) { return ShapesOf(op, op.input(kQuery).rank()); }

Status CheckMask(const InferContext& c, const Shapes& s) {
  if (!c.has_input(kMask)) return OkStatus();
  if (c.dtype(kMask) != DType::kBool && c.dtype(kMask) != c.dtype(kQuery)) {
    return InvalidModel("attn_mask has element type ", c.dtype(kMask), ", must be bool or ",
                        c.dtype(kQuery), " like Q");
  }
  if (!c.input(kMask).rank_known) return OkStatus();
  return CheckBroadcastsTo(c.dims(kMask), s.score_dims(), "attn_mask");
}

Result<Dims> ResultDims(const Shapes& s) {
  if (!s.packed) return Dims{s.query.batch, s.query.heads, s.query.rows, s.value.width};
  int64_t hidden = kUnknownDim;
  if (IsKnown(s.value.width) && !CheckedMul(s.query.heads, s.value.width, &hidden)) {
    return InvalidModel("the output would have ", s.query.heads, " heads of ", s.value.width,
                        " elements, which is too many");
  }
  return Dims{s.query.batch, s.query.rows, hidden};
}

Status InferAttention(InferContext& c) {
  const DType precision = c.op().Dtype("softmax_precision");
  if (precision != DType::kNone && !IsFloat(precision)) {
    return InvalidModel("softmax_precision = ", precision, ", must be one of ",
                        kFloatTypes.Names());
  }
  MSRT_ASSIGN_OR_RETURN(const int rank, RankOf(c.op()));
  if (rank == 0) {
    for (size_t i = 0; i < c.output_count(); ++i)
      c.SetOutput(i, Type::UnrankedTensor(c.dtype(i == kPresentValue ? kValue : kQuery)));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const Shapes s, ShapesOf(c.op(), rank));
  MSRT_RETURN_IF_ERROR(CheckMask(c, s));
  MSRT_ASSIGN_OR_RETURN(const Dims result, ResultDims(s));
  c.SetOutput(kResult, c.dtype(kQuery), result);
  c.SetOutput(kPresentKey, c.dtype(kKey), {s.key.batch, s.key.heads, s.total, s.key.width});
  c.SetOutput(kPresentValue, c.dtype(kValue),
              {s.value.batch, s.value.heads, s.total, s.value.width});
  c.SetOutput(kScores, c.dtype(kQuery), s.score_dims());
  return OkStatus();
}

// The log-sum-exp of the scores of a query row has at least the precision of f32.
Status InferAttentionPart(InferContext& c) {
  MSRT_RETURN_IF_ERROR(InferAttention(c));
  const DType dtype = c.dtype(kQuery) == DType::kF64 ? DType::kF64 : DType::kF32;
  MSRT_ASSIGN_OR_RETURN(const int rank, RankOf(c.op()));
  if (rank == 0) {
    c.SetOutput(kLogWeights, Type::UnrankedTensor(dtype));
    return OkStatus();
  }
  MSRT_ASSIGN_OR_RETURN(const Shapes s, ShapesOf(c.op(), rank));
  c.SetOutput(kLogWeights, dtype, {s.query.batch, s.query.heads, s.query.rows});
  return OkStatus();
}

// ---- iteration space ----------------------------------------------------------------------------

enum Axis : int { kBatchAxis, kHeadsAxis, kRowsAxis, kKeysAxis, kNoAxis = -1 };

// How the four dims [batch, heads, rows, columns] of a tensor follow the axes, for a tensor that
// packs its heads [batch, rows, heads * columns] or not. Rows and columns that follow no axis are
// whole.
TensorMap HeadsMap(bool packed, const Dims& dims, int64_t group, int64_t width, Axis rows_axis) {
  TensorMap map = TensorMap::Whole(dims);
  map.dims[0] = DimMap::Same(kBatchAxis, dims[0]);
  map.dims[packed ? 2 : 1] =
      DimMap::Block(kHeadsAxis, packed ? group * width : group, dims[packed ? 2 : 1]);
  const int rows = packed ? 1 : 2;
  if (rows_axis != kNoAxis)
    map.dims[static_cast<size_t>(rows)] = DimMap::Same(rows_axis, dims[rows]);
  return map;
}

// The dims of a mask align at the right with those of the scores.
TensorMap MaskMap(const Dims& mask, const TensorMap& scores) {
  TensorMap map = TensorMap::Whole(mask);
  for (int d = 0; d < mask.rank(); ++d) {
    const auto aligned = scores.dims.size() - mask.size() + static_cast<size_t>(d);
    if (mask[d] != 1) map.dims[static_cast<size_t>(d)] = scores.dims[aligned];
  }
  return map;
}

// Axes: batch, key heads, query rows, and keys of an AttentionPart. Every piece of query rows would
// write the same cache, so rows are cut only if no cache is written.
Status ResolveAttention(const OpView& op, ResolvedSpace* space) {
  MSRT_ASSIGN_OR_RETURN(const Shapes s, ShapesOf(op));
  const bool writes_cache =
      op.op() != "AttentionPart" && (op.has_output(kPresentKey) || op.has_output(kPresentValue));
  space->axes.Add(AxisKind::kParallel, s.query.batch);
  space->axes.Add(AxisKind::kParallel, s.key.heads);
  space->axes.Add(writes_cache ? AxisKind::kWhole : AxisKind::kParallel, s.query.rows);

  const auto heads = [&](const Type& type, bool packed, int64_t group, int64_t width, Axis rows) {
    return HeadsMap(packed, type.dims, group, width, rows);
  };
  const bool part = op.op() == "AttentionPart";
  const Axis keys = part ? kKeysAxis : kNoAxis;
  if (part) space->axes.Add(AxisKind::kReduce, s.key.rows, Monoid::kSoftmax);
  space->inputs[kQuery] = heads(op.input(kQuery), s.packed, s.group(), s.query.width, kRowsAxis);
  space->inputs[kKey] = heads(op.input(kKey), s.packed, 1, s.key.width, keys);
  space->inputs[kValue] = heads(op.input(kValue), s.packed, 1, s.value.width, keys);
  for (size_t i : {kPastKey, kPastValue}) {
    if (op.has_input(i)) space->inputs[i] = heads(op.input(i), false, 1, 0, kNoAxis);
  }
  TensorMap scores = HeadsMap(false, s.score_dims(), s.group(), 0, kRowsAxis);
  if (part) scores.dims[3] = DimMap::Same(kKeysAxis, s.total);
  if (op.has_input(kMask)) space->inputs[kMask] = MaskMap(op.input(kMask).dims, scores);

  space->outputs[kResult] =
      heads(op.output(kResult), s.packed, s.group(), s.value.width, kRowsAxis);
  if (part) {
    scores.dims.pop_back();
    space->outputs[kLogWeights] = std::move(scores);
    return OkStatus();
  }
  for (size_t o : {kPresentKey, kPresentValue}) {
    if (op.has_output(o)) space->outputs[o] = heads(op.output(o), false, 1, 0, kNoAxis);
  }
  if (op.has_output(kScores)) space->outputs[kScores] = scores;
  return OkStatus();
}

Status AttentionLocalize(const OpView& op, const Box& box, std::span<const Box>,
                         std::span<const Box>, AttrList* attrs) {
  MSRT_ASSIGN_OR_RETURN(const Shapes s, ShapesOf(op));
  // Pieces without heads have no elements, but the attributes must still be at least 1.
  const int64_t heads = std::max<int64_t>(box[1].size(), 1);
  if (op.Has("q_num_heads")) attrs->Set("q_num_heads", heads * std::max<int64_t>(s.group(), 1));
  if (op.Has("kv_num_heads")) attrs->Set("kv_num_heads", heads);
  if (op.Int("is_causal") != 0) {
    const int64_t first_key = box.rank() > kKeysAxis ? box[kKeysAxis].begin : 0;
    attrs->Set("row_offset", op.Int("row_offset") + box[kRowsAxis].begin - first_key);
  }
  return OkStatus();
}

constexpr SpaceDef kAttentionSpace{.localize = AttentionLocalize, .resolve = ResolveAttention};

// Two products, and five operations of the softmax for each score.
Cost AttentionCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const auto s = ShapesOf(op);
  if (!s.ok()) return cost;
  double scores = 1;
  for (int64_t d : s->score_dims()) scores *= static_cast<double>(d);
  cost.flops = scores * (2.0 * static_cast<double>(s->key.width) +
                         2.0 * static_cast<double>(s->value.width) + 5.0);
  return cost;
}

// ---- entry --------------------------------------------------------------------------------------

constexpr int64_t kMaxRows = int64_t{1} << 56;

constexpr AttrDef kAttentionAttrs[] = {
    {.name = "is_causal", .min_int = 0, .max_int = 1},
    {.name = "kv_num_heads", .min_int = 1},
    {.name = "q_num_heads", .min_int = 1},
    {.name = "qk_matmul_output_mode", .min_int = 0, .max_int = 3},
    {.name = "scale", .kind = AttrKind::kFloat, .min_float = 0},
    {.name = "softcap", .kind = AttrKind::kFloat, .min_float = 0},
    {.name = "softmax_precision", .kind = AttrKind::kDType},
    {.name = "row_offset", .min_int = -kMaxRows, .max_int = kMaxRows, .local = true},
};

constexpr ParamDef kAttentionInputs[] = {
    {.name = "Q", .types = kFloatTypes, .group = 1},
    {.name = "K", .types = kFloatTypes, .group = 1},
    {.name = "V", .types = kFloatTypes, .group = 2},
    {.name = "attn_mask", .types = kFloatTypes | kBoolType, .kind = ParamDef::kOptional},
    {.name = "past_key", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "past_value", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 2},
};

// Passes make FusedAttention from a chain of products and a Softmax: a row whose scores are all
// minus infinity is NaN, as the Softmax would be; Attention returns zeros for it.
// AttentionPart returns zeros for such a row, with the weight zero.
constexpr OpDef kAttentionOps[] = {
    {.name = "Attention",
     .attrs = kAttentionAttrs,
     .inputs = kAttentionInputs,
     .max_outputs = 4,
     .infer = InferAttention,
     .grad = GradAttention,
     .space = &kAttentionSpace,
     .expand = ExpandAttention,
     .cost = AttentionCost},
    {.name = "FusedAttention",
     .domain = "msrt",
     .version = 1,
     .attrs = kAttentionAttrs,
     .inputs = kAttentionInputs,
     .max_outputs = 4,
     .infer = InferAttention,
     .grad = GradAttention,
     .space = &kAttentionSpace,
     .cost = AttentionCost},
    {.name = "AttentionPart",
     .domain = "msrt",
     .version = 1,
     .attrs = kAttentionAttrs,
     .inputs = std::span(kAttentionInputs).first(kPastKey),
     .min_outputs = 2,
     .max_outputs = 2,
     .infer = InferAttentionPart,
     .grad = GradAttentionPart,
     .space = &kAttentionSpace,
     .cost = AttentionCost},
};

}  // namespace

std::span<const OpDef> AttentionOps() { return kAttentionOps; }

}  // namespace msrt
