#include "core/passes/attention_pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/node_view.h"

namespace msrt {
namespace {

constexpr int kMaxScales = 3;  // scales in a row

// Strips products with numbers from `v` and multiplies them into `scale`.
ValueId TakeScales(Match* m, ValueId v, double* scale) {
  for (int i = 0; i < kMaxScales; ++i) {
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

// Finds the keys before they were transposed into columns, and before a scale of them.
bool TakeKeys(Match* m, ValueId turned, Attention* a) {
  if (!m->r.type(turned).rank_known) return false;
  a->key = TakeScales(m, turned, &a->scale);
  a->key_perm.resize(static_cast<size_t>(m->r.type(turned).rank()));
  std::iota(a->key_perm.begin(), a->key_perm.end(), 0);
  const auto transpose = m->r.Producer(a->key, "Transpose");
  if (!transpose) return true;
  const NodeView view(m->r.graph(), m->r.node(*transpose));
  const auto perm = view.op().Ints("perm");
  if (perm.size() != a->key_perm.size()) return false;
  Match behind = *m;
  behind.Take(a->key, "Transpose");
  a->key = m->r.node(*transpose).inputs[0];
  a->key_perm.assign(perm.begin(), perm.end());
  const ValueId rows = TakeScales(&behind, a->key, &a->scale);
  if (rows != a->key) m->inner = behind.inner;
  a->key = rows;
  return true;
}

// Whether `v` is a constant with one factor for each head.
bool IsHeadFactor(const Rewriter& r, ValueId v) {
  const ConstTensor* c = r.constant(v);
  const int rank = c == nullptr ? 0 : c->dims.rank();
  return rank >= 3 && c->dims[rank - 1] == 1 && c->dims[rank - 2] == 1 &&
         c->dims[rank - 3] == c->dims.elements();
}

bool TakeScores(Match* m, ValueId v, Attention* a) {
  v = TakeScales(m, v, &a->scale);
  if (const auto n = m->r.Producer(v, "Mul")) {
    const std::vector<ValueId>& factors = m->r.node(*n).inputs;
    const auto found = std::find_if(factors.begin(), factors.end(),
                                    [&](ValueId f) { return IsHeadFactor(m->r, f); });
    if (found == factors.end()) return false;
    a->head_factor = *found;
    m->Take(v, "Mul");
    v = factors[found == factors.begin() ? 1 : 0];
  }
  const Node* product = m->Take(v, "MatMul");
  if (product == nullptr) return false;
  a->query = TakeScales(m, product->inputs[0], &a->scale);
  return TakeKeys(m, product->inputs[1], a);
}

// Matches scores, or a choice between them and minus infinity.
bool TakeChosenScores(Match* m, ValueId v, Attention* a) {
  if (const Node* where = m->Take(v, "Where")) {
    const auto is_hidden = [&](size_t i) {
      return ScalarOf(m->r, where->inputs[i]) == -std::numeric_limits<double>::infinity();
    };
    a->choice = where->inputs[0];
    a->chooses_hidden = is_hidden(1);
    const size_t scores = a->chooses_hidden ? 2 : 1;
    return is_hidden(3 - scores) &&
           KeepsDims(m->r.type(where->inputs[3 - scores]), m->r.type(where->inputs[scores])) &&
           TakeScores(m, where->inputs[scores], a);
  }
  return TakeScores(m, v, a);
}

// Replaces a mask that chooses between zero and minus infinity by its choice. A choice of hidden
// keys stays a mask: many layers often share it, and the opposite choice would be computed for
// each.
void ReduceToChoice(const Rewriter& r, Attention* a) {
  const auto n = r.Producer(a->mask, "Where");
  if (!n || a->choice != kNoValue) return;
  const Node& where = r.node(*n);
  if (ScalarOf(r, where.inputs[1]) != 0.0 ||
      ScalarOf(r, where.inputs[2]) != -std::numeric_limits<double>::infinity())
    return;
  a->choice = where.inputs[0];
  a->mask = kNoValue;
}

// Matches scores with or without an added mask.
bool TakeMaskedScores(Match* m, ValueId v, Attention* a) {
  const auto sum = m->r.Producer(v, "Add");
  if (!sum) return TakeChosenScores(m, v, a);
  m->Take(v, "Add");
  for (size_t i = 0; i < 2; ++i) {
    Match side = *m;
    Attention found = *a;
    if (!TakeChosenScores(&side, m->r.node(*sum).inputs[i], &found)) continue;
    found.mask = m->r.node(*sum).inputs[1 - i];
    ReduceToChoice(m->r, &found);
    *a = found;
    m->inner = side.inner;
    return true;
  }
  return false;
}

// Matches the softmax over keys, whose NaNs may be replaced by zeros. Returns its input.
ValueId TakeSoftmax(Match* m, ValueId v, Attention* a) {
  if (const auto guard = m->r.Producer(v, "Where")) {
    const Node& where = m->r.node(*guard);
    const auto test = m->r.Producer(where.inputs[0], "IsNaN");
    if (!test || m->r.node(*test).inputs[0] != where.inputs[2] ||
        ScalarOf(m->r, where.inputs[1]) != 0.0)
      return kNoValue;
    if (!KeepsDims(m->r.type(where.inputs[1]), m->r.type(where.inputs[2]))) return kNoValue;
    m->Take(v, "Where");
    m->Take(where.inputs[0], "IsNaN");
    v = where.inputs[2];
    a->guarded = true;
  }
  const Node* softmax = m->Take(v, "Softmax");
  if (softmax == nullptr || !m->r.type(v).rank_known) return kNoValue;
  const int64_t axis = NodeView(m->r.graph(), *softmax).op().Int("axis");
  return axis == -1 || axis == m->r.type(v).rank() - 1 ? softmax->inputs[0] : kNoValue;
}

}  // namespace

std::optional<Attention> FindAttention(const Rewriter& r, size_t n) {
  Match m(r);
  Attention a;
  const ValueId scores = TakeSoftmax(&m, r.node(n).inputs[0], &a);
  a.value = r.node(n).inputs[1];
  if (scores == kNoValue || !TakeMaskedScores(&m, scores, &a) || !m.OnlyFeeds(n))
    return std::nullopt;
  return std::isfinite(a.scale) && a.scale >= 0 ? std::optional(std::move(a)) : std::nullopt;
}

}  // namespace msrt
