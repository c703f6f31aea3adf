#include "core/passes/recognize_attention.h"

#include <algorithm>
#include <limits>

#include "core/passes/attention_pattern.h"
#include "core/passes/eliminate_moves.h"
#include "core/passes/pack_heads.h"
#include "core/passes/symbolic_shapes.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

using IntList = std::vector<int64_t>;

// ---- shapes -------------------------------------------------------------------------------------

// The last three dims are heads, rows and width; the dims before them are batches.
int RankOf(const Rewriter& r, const Attention& a) { return r.type(a.query).rank(); }

// Whether the mask broadcasts to the scores, and is the same for all batches if those are several
// dims.
bool IsWithinScores(const Rewriter& r, const ProvenDims& proven, const Attention& a, ValueId mask) {
  const Type& type = r.type(mask);
  const int rank = RankOf(r, a);
  if (!type.rank_known || type.rank() > 4) return false;
  for (int i = 0; i < type.rank(); ++i) {
    if (type.dims[i] == 1) continue;
    const int axis = rank - type.rank() + i;
    if (axis < rank - 3 && rank > 4) return false;
    const bool fits = axis == rank - 1
                          ? proven.Equal(mask, i, a.key, static_cast<int>(a.key_perm.back()))
                          : proven.Equal(mask, i, a.query, axis);
    if (!fits) return false;
  }
  return true;
}

// Whether batches and heads of query, key and value are equal, and the masks fit the scores.
bool HasAttentionShapes(const Rewriter& r, const ProvenDims& proven, const Attention& a) {
  const DType dtype = r.type(a.query).dtype;
  const int rank = RankOf(r, a);
  if ((dtype != DType::kF32 && dtype != DType::kF64) || !r.type(a.query).rank_known || rank < 4)
    return false;
  for (ValueId v : {a.key, a.value}) {
    const Type& t = r.type(v);
    if (!t.rank_known || t.rank() != rank || t.dtype != dtype) return false;
    for (int i = 0; i < rank - 2; ++i) {
      if (!proven.Equal(v, v == a.key ? static_cast<int>(a.key_perm[static_cast<size_t>(i)]) : i,
                        a.query, i))
        return false;
    }
  }
  return (a.mask == kNoValue || IsWithinScores(r, proven, a, a.mask)) &&
         (a.choice == kNoValue || IsWithinScores(r, proven, a, a.choice));
}

// ---- batches of several dims --------------------------------------------------------------------

bool KeepsBatches(const IntList& perm) {
  for (size_t i = 0; i + 3 < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Returns a permutation of the last three dims as one of four.
IntList WithOneBatch(const IntList& perm) {
  IntList out{0};
  for (size_t i = perm.size() - 3; i < perm.size(); ++i)
    out.push_back(perm[i] - static_cast<int64_t>(perm.size()) + 4);
  return out;
}

// Returns dims with at most one open dim as the list of a Reshape.
std::optional<IntList> ShapeList(const Dims& dims) {
  IntList list(dims.begin(), dims.end());
  if (std::count_if(dims.begin(), dims.end(), [](int64_t d) { return !IsKnown(d); }) > 1)
    return std::nullopt;
  std::replace_if(
      list.begin(), list.end(), [](int64_t d) { return !IsKnown(d); }, int64_t{-1});
  return list;
}

// Adds nodes before node `n` that transpose `v` by `perm`, with all its batches as one dim.
ValueId Turned(Rewriter* r, size_t n, ValueId v, IntList perm) {
  if (perm.size() > 4) {
    const Dims& dims = r->type(v).dims;
    IntList shape{-1};
    for (int i = dims.rank() - 3; i < dims.rank(); ++i) shape.push_back(dims[i]);
    if (!KeepsBatches(perm) ||
        std::any_of(shape.begin() + 1, shape.end(), [](int64_t d) { return d < 1; }))
      return kNoValue;
    v = r->Add(n, "Reshape", {v}, {{"shape", std::move(shape)}});
    perm = WithOneBatch(perm);
  }
  if (v == kNoValue || std::is_sorted(perm.begin(), perm.end())) return v;
  return r->Add(n, "Transpose", {v}, {{"perm", std::move(perm)}});
}

// Returns the permutation of the Transpose that made `v` from *source. If there is none that keeps
// batches, *source is `v` and the permutation is the identity.
IntList Untransposed(const Rewriter& r, ValueId v, ValueId* source) {
  *source = v;
  IntList perm;
  for (int i = 0; i < r.type(v).rank(); ++i) perm.push_back(i);
  const auto transpose = perm.size() > 4 ? r.Producer(v, "Transpose") : std::nullopt;
  if (!transpose) return perm;
  const NodeView view(r.graph(), r.node(*transpose));
  const auto given = view.op().Ints("perm");
  const IntList found(given.begin(), given.end());
  if (found.size() != perm.size() || !KeepsBatches(found)) return perm;
  *source = r.node(*transpose).inputs[0];
  return found;
}

ValueId WithOneBatchDim(Rewriter* r, size_t n, ValueId v) {
  ValueId source;
  IntList perm = Untransposed(*r, v, &source);
  return Turned(r, n, source, std::move(perm));
}

// Makes node `n` restore the batches. If a Transpose is the only user of `n`, it works on one batch
// dim instead.
bool RestoreBatches(Rewriter* r, size_t n, ValueId result) {
  const ValueId out = r->node(n).outputs[0];
  const auto shape = ShapeList(r->type(out).dims);
  if (!shape || !r->Replace(n, "Reshape", {result}, {{"shape", *shape}})) return false;
  const auto user = r->SoleUser(out);
  if (!user || !r->Is(*user, "Transpose")) return true;
  const NodeView view(r->graph(), r->node(*user));
  const auto given = view.op().Ints("perm");
  const IntList perm(given.begin(), given.end());
  const auto turned_shape = ShapeList(r->type(r->node(*user).outputs[0]).dims);
  if (perm.size() < 4 || !KeepsBatches(perm) || !turned_shape) return true;
  const ValueId turned = r->Add(*user, "Transpose", {result}, {{"perm", WithOneBatch(perm)}});
  if (turned != kNoValue) r->Replace(*user, "Reshape", {turned}, {{"shape", *turned_shape}});
  return true;
}

// ---- the node -----------------------------------------------------------------------------------

// Combines both masks into the one that Attention takes, before node `n`; kNoValue if there is
// none.
ValueId JoinedMask(Rewriter* r, size_t n, const Attention& a) {
  if (a.choice == kNoValue) return a.mask;
  if (a.mask == kNoValue && !a.chooses_hidden) return a.choice;
  if (a.mask == kNoValue) return r->Add(n, "Not", {a.choice}, {});
  const bool wide = r->type(a.mask).dtype == DType::kF64;
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueId hidden = r->AddConstant(
      "hidden", wide ? ConstTensor::Of<double>(DType::kF64, {}, std::vector<double>{-infinity})
                     : ConstTensor::Floats({}, std::vector<float>{static_cast<float>(-infinity)}));
  const bool first = a.chooses_hidden;
  return r->Add(n, "Where", {a.choice, first ? hidden : a.mask, first ? a.mask : hidden}, {});
}

// Returns the heads before each was repeated for a group of query heads: [batch, heads, rows,
// width] with a new axis after the heads, which is expanded and merged with them. kNoValue if they
// are not repeated.
ValueId Unrepeated(const Rewriter& r, const ProvenDims& proven, ValueId v) {
  const auto merge = r.Producer(v, "Reshape");
  const auto expand = merge ? r.Producer(r.node(*merge).inputs[0], "Expand") : std::nullopt;
  const auto view = expand ? r.Producer(r.node(*expand).inputs[0]) : std::nullopt;
  if (!view || (!r.Is(*view, "Unsqueeze") && !r.Is(*view, "Reshape"))) return kNoValue;
  const ValueId source = r.node(*view).inputs[0], viewed = r.node(*view).outputs[0],
                expanded = r.node(*expand).outputs[0];
  const Type &from = r.type(source), &apart = r.type(viewed), &wide = r.type(expanded),
             &to = r.type(v);
  for (const auto& [type, rank] : {std::pair{&from, 4}, {&apart, 5}, {&wide, 5}, {&to, 4}}) {
    if (!type->rank_known || type->rank() != rank) return kNoValue;
  }
  if (apart.dims[2] != 1 || !IsKnown(wide.dims[2]) || !IsKnown(from.dims[1]) ||
      to.dims[1] != from.dims[1] * wide.dims[2])
    return kNoValue;
  for (int i = 0; i < 4; ++i) {
    const int at = i < 2 ? i : i + 1;
    if (!proven.Equal(source, i, viewed, at) || !proven.Equal(source, i, expanded, at))
      return kNoValue;
    if (i != 1 && !proven.Equal(source, i, v, i)) return kNoValue;
  }
  return source;
}

// Makes queries, keys and values with one batch dim; returns false if that is impossible.
bool TakeOperands(Rewriter* r, const ProvenDims& proven, size_t n, const Attention& a,
                  std::vector<ValueId>* inputs) {
  ValueId query = a.query;
  if (a.head_factor != kNoValue) query = r->Add(n, "Mul", {query, a.head_factor}, {});
  IntList rows = a.key_perm;
  std::swap(rows[rows.size() - 1], rows[rows.size() - 2]);
  *inputs = {query == kNoValue ? kNoValue : WithOneBatchDim(r, n, query), Turned(r, n, a.key, rows),
             WithOneBatchDim(r, n, a.value)};
  if (std::find(inputs->begin(), inputs->end(), kNoValue) != inputs->end()) return false;
  const ValueId few_keys = Unrepeated(*r, proven, (*inputs)[1]),
                few_values = Unrepeated(*r, proven, (*inputs)[2]);
  if (few_keys != kNoValue && few_values != kNoValue &&
      r->type(few_keys).dims[1] == r->type(few_values).dims[1]) {
    (*inputs)[1] = few_keys;
    (*inputs)[2] = few_values;
  }
  return true;
}

void Recognize(Rewriter* r, const ProvenDims& proven, size_t n) {
  const auto found = FindAttention(*r, n);
  if (!found || !HasAttentionShapes(*r, proven, *found)) return;
  const Attention& a = *found;
  // Batches of several dims must be restored.
  const bool merged = RankOf(*r, a) > 4;
  if (merged && !ShapeList(r->type(r->node(n).outputs[0]).dims)) return;
  std::vector<ValueId> inputs;
  if (!TakeOperands(r, proven, n, a, &inputs)) return;
  const bool masked = a.mask != kNoValue || a.choice != kNoValue;
  if (const ValueId mask = JoinedMask(r, n, a); mask != kNoValue) inputs.push_back(mask);
  else if (masked) return;
  // The softmax of a hidden row is NaN; Attention returns zeros there, as a guard does.
  const bool zeros = a.guarded || !masked;
  const std::string_view op = zeros ? "Attention" : "FusedAttention", domain = zeros ? "" : "msrt";
  if (!merged) {
    r->Replace(n, op, std::move(inputs), {{"scale", a.scale}}, domain);
  } else if (const ValueId result = r->Add(n, op, std::move(inputs), {{"scale", a.scale}}, domain);
             result != kNoValue) {
    RestoreBatches(r, n, result);
  }
}

}  // namespace

Status RecognizeAttention(const PassContext& context, Graph* graph) {
  const auto has = [&](std::string_view op) {
    return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                       [&](const Node& node) { return node.op == op; });
  };
  if (has("Softmax")) {
    const ProvenDims proven(*graph);
    Rewriter r(context, graph);
    const size_t count = r.node_count();
    for (size_t n = 0; n < count; ++n) {
      if (r.Is(n, "MatMul")) Recognize(&r, proven, n);
    }
  }
  if (!has("Attention") && !has("FusedAttention")) return OkStatus();
  if (!PackHeads(context, graph)) return OkStatus();
  // Splitting or merging heads next to a packed Attention is a view now, which may join other
  // views.
  return EliminateMoves(context, graph);
}

}  // namespace msrt
