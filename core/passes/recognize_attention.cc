#include "core/passes/recognize_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/passes/rewrite.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

constexpr int kMostScales = 3;  // one after the other

struct Attention {
  ValueId query = kNoValue, turned_key = kNoValue, value = kNoValue;
  ValueId mask = kNoValue;    // added
  ValueId choice = kNoValue;  // keys that are seen, or not
  bool chooses_hidden = false;
  double scale = 1;
};

// What is left of `v` without products with numbers, which go into `scale`.
ValueId TakeScales(Match* m, ValueId v, double* scale) {
  for (int i = 0; i < kMostScales; ++i) {
    if (const auto product = m->TakeWithScalar(v, "Mul")) {
      *scale *= product->constant;
      v = product->x;
    } else if (const auto quotient = m->TakeWithScalar(v, "Div", true)) {
      *scale /= quotient->constant;
      v = quotient->x;
    } else {
      break;
    }
  }
  return v;
}

bool TakeScores(Match* m, ValueId v, Attention* a) {
  v = TakeScales(m, v, &a->scale);
  const Node* product = m->Take(v, "MatMul");
  if (product == nullptr) return false;
  a->query = TakeScales(m, product->inputs[0], &a->scale);
  a->turned_key = TakeScales(m, product->inputs[1], &a->scale);
  return true;
}

// Scores, or a choice between them and minus infinity.
bool TakeChosenScores(Match* m, ValueId v, Attention* a) {
  if (const Node* where = m->Take(v, "Where")) {
    const auto is_hidden = [&](size_t i) { return ScalarOf(m->r, where->inputs[i]) == -std::numeric_limits<double>::infinity(); };
    a->choice = where->inputs[0];
    a->chooses_hidden = is_hidden(1);
    const size_t scores = a->chooses_hidden ? 2 : 1;
    return is_hidden(3 - scores) && KeepsDims(m->r.type(where->inputs[3 - scores]), m->r.type(where->inputs[scores])) &&
           TakeScores(m, where->inputs[scores], a);
  }
  return TakeScores(m, v, a);
}

// With a mask added, or without one.
bool TakeMaskedScores(Match* m, ValueId v, Attention* a) {
  const auto sum = m->r.Producer(v, "Add");
  if (!sum) return TakeChosenScores(m, v, a);
  m->Take(v, "Add");
  for (size_t i = 0; i < 2; ++i) {
    Match side = *m;
    Attention found = *a;
    if (!TakeChosenScores(&side, m->r.node(*sum).inputs[i], &found)) continue;
    found.mask = m->r.node(*sum).inputs[1 - i];
    *a = found;
    m->inner = side.inner;
    return true;
  }
  return false;
}

// The softmax over keys, whose NaN may be replaced by zeros: its input.
ValueId TakeSoftmax(Match* m, ValueId v) {
  if (const auto guard = m->r.Producer(v, "Where")) {
    const Node& where = m->r.node(*guard);
    const auto test = m->r.Producer(where.inputs[0], "IsNaN");
    if (!test || m->r.node(*test).inputs[0] != where.inputs[2] || ScalarOf(m->r, where.inputs[1]) != 0.0) return kNoValue;
    if (!KeepsDims(m->r.type(where.inputs[1]), m->r.type(where.inputs[2]))) return kNoValue;
    m->Take(v, "Where");
    m->Take(where.inputs[0], "IsNaN");
    v = where.inputs[2];
  }
  const Node* softmax = m->Take(v, "Softmax");
  if (softmax == nullptr || !m->r.type(v).rank_known) return kNoValue;
  const int64_t axis = NodeView(m->r.graph(), *softmax).op().Int("axis");
  return axis == -1 || axis == m->r.type(v).rank() - 1 ? softmax->inputs[0] : kNoValue;
}

bool IsWithin(const Type& mask, const Dims& scores) {
  if (!mask.rank_known || mask.rank() > scores.rank()) return false;
  for (int i = 0; i < mask.rank(); ++i) {
    if (mask.dims[i] != 1 && !ProvenEqual(mask.dims[i], scores[scores.rank() - mask.rank() + i])) return false;
  }
  return true;
}

// Batches and heads are the same for all three, and the masks have nothing that the scores do not have.
bool HasAttentionShapes(const Rewriter& r, const Attention& a) {
  const Type &q = r.type(a.query), &k = r.type(a.turned_key), &v = r.type(a.value);
  for (const Type* t : {&q, &k, &v}) {
    if (!t->rank_known || t->rank() != 4 || t->dtype != q.dtype) return false;
    if (!ProvenEqual(t->dims[0], q.dims[0]) || !ProvenEqual(t->dims[1], q.dims[1])) return false;
  }
  if (q.dtype != DType::kF32 && q.dtype != DType::kF64) return false;
  const Dims scores{q.dims[0], q.dims[1], q.dims[2], k.dims[3]};
  return (a.mask == kNoValue || IsWithin(r.type(a.mask), scores)) && (a.choice == kNoValue || IsWithin(r.type(a.choice), scores));
}

// The one mask that Attention takes, made of both before node `n`; kNoValue where there is none.
ValueId JoinedMask(Rewriter* r, size_t n, const Attention& a) {
  if (a.choice == kNoValue) return a.mask;
  if (a.mask == kNoValue && !a.chooses_hidden) return a.choice;
  if (a.mask == kNoValue) return r->Add(n, "Not", {a.choice}, {});
  const bool wide = r->type(a.mask).dtype == DType::kF64;
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueId hidden = r->AddConstant("hidden", wide ? ConstTensor::Of<double>(DType::kF64, {}, std::vector<double>{-infinity})
                                                       : ConstTensor::Floats({}, std::vector<float>{static_cast<float>(-infinity)}));
  const bool first = a.chooses_hidden;
  return r->Add(n, "Where", {a.choice, first ? hidden : a.mask, first ? a.mask : hidden}, {});
}

std::optional<std::vector<int64_t>> PermOf(const Rewriter& r, size_t transpose) {
  const NodeView view(r.graph(), r.node(transpose));
  const auto perm = view.op().Ints("perm");
  return perm.size() == 4 ? std::optional(std::vector<int64_t>(perm.begin(), perm.end())) : std::nullopt;
}

// The keys as rows, from the Transpose that made columns of them.
ValueId KeyRows(Rewriter* r, size_t before, ValueId turned) {
  const auto transpose = r->Producer(turned, "Transpose");
  auto perm = transpose ? PermOf(*r, *transpose) : std::nullopt;
  if (!perm) return kNoValue;
  std::swap((*perm)[2], (*perm)[3]);
  const ValueId source = r->node(*transpose).inputs[0];
  if (std::is_sorted(perm->begin(), perm->end())) return source;
  return r->Add(before, "Transpose", {source}, {{"perm", *std::move(perm)}});
}

void Recognize(Rewriter* r, size_t n) {
  Match m(*r);
  Attention a;
  const ValueId scores = TakeSoftmax(&m, r->node(n).inputs[0]);
  a.value = r->node(n).inputs[1];
  if (scores == kNoValue || !TakeMaskedScores(&m, scores, &a) || !m.OnlyFeeds(n)) return;
  if (!std::isfinite(a.scale) || a.scale < 0 || !HasAttentionShapes(*r, a) || !r->Producer(a.turned_key, "Transpose")) return;
  const ValueId key = KeyRows(r, n, a.turned_key);
  if (key == kNoValue) return;
  std::vector<ValueId> inputs{a.query, key, a.value};
  if (const ValueId mask = JoinedMask(r, n, a); mask != kNoValue) inputs.push_back(mask);
  else if (a.mask != kNoValue || a.choice != kNoValue) return;
  r->Replace(n, "Attention", std::move(inputs), {{"scale", a.scale}});
}

// ---- packed heads -----------------------------------------------------------------------------------------------------------------

bool SwapsHeadsAndRows(const Rewriter& r, size_t transpose) { return PermOf(r, transpose) == std::vector<int64_t>{0, 2, 1, 3}; }

// [batch, rows, heads, width] and [batch, rows, heads * width].
bool AreSplitAndPacked(const Type& split, const Type& packed) {
  if (!split.rank_known || split.rank() != 4 || !packed.rank_known || packed.rank() != 3) return false;
  return ProvenEqual(split.dims[0], packed.dims[0]) && ProvenEqual(split.dims[1], packed.dims[1]) && IsKnown(split.dims[2]) &&
         IsKnown(split.dims[3]) && split.dims[2] >= 1 && IsKnown(packed.dims[2]) && packed.dims[2] == split.dims[2] * split.dims[3];
}

// The value before its heads were split off, or kNoValue.
ValueId PackedSource(const Rewriter& r, ValueId v) {
  const auto transpose = r.Producer(v, "Transpose");
  if (!transpose || !SwapsHeadsAndRows(r, *transpose)) return kNoValue;
  const auto reshape = r.Producer(r.node(*transpose).inputs[0], "Reshape");
  if (!reshape) return kNoValue;
  const ValueId source = r.node(*reshape).inputs[0];
  return AreSplitAndPacked(r.type(r.node(*reshape).outputs[0]), r.type(source)) ? source : kNoValue;
}

// `n` is the Reshape that merges heads behind an Attention.
void Pack(Rewriter* r, size_t n) {
  const ValueId merged = r->node(n).inputs[0];
  const auto transpose = r->Producer(merged, "Transpose");
  if (!transpose || r->uses(merged) != 1 || !SwapsHeadsAndRows(*r, *transpose)) return;
  const ValueId result = r->node(*transpose).inputs[0];
  const auto attention = r->Producer(result, "Attention");
  if (!attention || r->uses(result) != 1 || !AreSplitAndPacked(r->type(merged), r->type(r->node(n).outputs[0]))) return;
  std::vector<ValueId> inputs = r->node(*attention).inputs;
  AttrList attrs = r->node(*attention).attrs;
  if (inputs.size() > 4 || attrs.Find("row_offset") != nullptr) return;
  const int64_t key_heads = r->type(inputs[1]).dims[1];
  for (size_t i = 0; i < 3; ++i) {
    inputs[i] = PackedSource(*r, inputs[i]);
    if (inputs[i] == kNoValue) return;
  }
  attrs.Set("q_num_heads", r->type(merged).dims[2]);
  attrs.Set("kv_num_heads", key_heads);
  r->Replace(n, "Attention", std::move(inputs), std::move(attrs));
}

}  // namespace

Status RecognizeAttention(const PassContext& context, Graph* graph) {
  const auto has = [&](std::string_view op) {
    return std::any_of(graph->nodes.begin(), graph->nodes.end(), [&](const Node& node) { return node.op == op; });
  };
  if (!has("Softmax") && !has("Attention")) return OkStatus();
  Rewriter r(context, graph);
  const size_t count = r.node_count();
  for (size_t n = 0; n < count; ++n) {
    if (r.Is(n, "MatMul")) Recognize(&r, n);
  }
  for (size_t n = 0; n < count; ++n) {
    if (r.Is(n, "Reshape")) Pack(&r, n);
  }
  return OkStatus();
}

}  // namespace msrt
