#include "core/passes/recognize_activations.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/passes/rewrite.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMaxDepth = 6;  // of nested sums and products
constexpr size_t kMaxFactors = 3;

// ---- Clip ---------------------------------------------------------------------------------------

struct Bounds {
  double low = -kInfinity, high = kInfinity;
};

// Returns the bounds of a node that clips its first input; f32 and f64 only, because an attribute
// represents their bounds exactly.
std::optional<Bounds> BoundsOf(const Rewriter& r, const Node& node, ValueId* x) {
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return std::nullopt;
  const DType dtype = r.type(node.inputs[0]).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return std::nullopt;
  *x = node.inputs[0];
  if (node.op == "Relu") return Bounds{0, kInfinity};
  if (node.op == "Max" || node.op == "Min") {
    const auto scaled = WithScalar(r, node);
    if (!scaled || std::isnan(scaled->constant)) return std::nullopt;
    *x = scaled->x;
    return node.op == "Max" ? Bounds{scaled->constant, kInfinity}
                            : Bounds{-kInfinity, scaled->constant};
  }
  if (node.op != "Clip") return std::nullopt;
  Bounds bounds;
  const NodeView view(r.graph(), node);
  for (const auto& [name, index, bound] :
       {std::tuple{"min", size_t{1}, &bounds.low}, std::tuple{"max", size_t{2}, &bounds.high}}) {
    if (view.op().Has(name)) *bound = view.op().Float(name);
    if (!view.op().has_input(index)) continue;
    const auto value = ScalarOf(r, node.inputs[index]);
    if (!value) return std::nullopt;
    *bound = *value;
  }
  return bounds.low <= bounds.high ? std::optional(bounds) : std::nullopt;  // false for NaNs too
}

bool SimplifyClip(Rewriter* r, size_t n) {
  const Node& node = r->node(n);
  ValueId x = kNoValue;
  auto bounds = BoundsOf(*r, node, &x);
  if (!bounds) return false;
  const auto p = r->Producer(x);
  ValueId inner = kNoValue;
  bool joined = false;
  if (p && r->IsLive(*p) && r->uses(x) == 1 && r->node(*p).outputs.size() == 1) {
    if (const auto first = BoundsOf(*r, r->node(*p), &inner)) {
      const Bounds both{std::max(first->low, bounds->low), std::min(first->high, bounds->high)};
      joined = both.low <= both.high;
      if (joined) bounds = both, x = inner;
    }
  }
  const bool plain = node.op == "Relu" || (node.op == "Clip" && node.inputs.size() == 1);
  if (plain && !joined) return false;
  if (bounds->low == 0 && bounds->high == kInfinity) return r->Replace(n, "Relu", {x}, {});
  AttrList attrs;
  if (bounds->low != -kInfinity) attrs.Set("min", bounds->low);
  if (bounds->high != kInfinity) attrs.Set("max", bounds->high);
  return r->Replace(n, "Clip", {x}, std::move(attrs));
}

// ---- polynomials and products -------------------------------------------------------------------

using Poly = std::array<double, 4>;  // coefficients of 1, x, x^2, x^3

std::optional<Poly> Times(const Poly& a, const Poly& b) {
  Poly product{};
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0) continue;
      if (i + j >= product.size()) return std::nullopt;
      product[i + j] += a[i] * b[j];
    }
  }
  return product;
}

// Returns `v` as a polynomial of `x`. The nodes in between join the match.
std::optional<Poly> PolyOf(Match* m, ValueId v, ValueId x, int depth = 0) {
  if (v == x) return Poly{0, 1, 0, 0};
  if (const auto c = ScalarOf(m->r, v))
    return KeepsDims(m->r.type(v), m->r.type(x)) ? std::optional(Poly{*c, 0, 0, 0}) : std::nullopt;
  if (depth == kMaxDepth) return std::nullopt;
  const auto n = m->r.Producer(v);
  if (!n || !m->r.IsLive(*n) || m->r.node(*n).inputs.size() != 2) return std::nullopt;
  const Node& node = m->r.node(*n);
  const bool known = node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Div" ||
                     node.op == "Pow";
  if (!known) return std::nullopt;
  const auto a = PolyOf(m, node.inputs[0], x, depth + 1);
  const auto b = a ? PolyOf(m, node.inputs[1], x, depth + 1) : std::nullopt;
  if (!b) return std::nullopt;
  m->Take(v, node.op);
  if (node.op == "Mul") return Times(*a, *b);
  const bool constant = (*b)[1] == 0 && (*b)[2] == 0 && (*b)[3] == 0;
  if (node.op == "Pow") {
    const auto square = Times(*a, *a);
    if (!constant || !square || ((*b)[0] != 2 && (*b)[0] != 3)) return std::nullopt;
    return (*b)[0] == 2 ? square : Times(*square, *a);
  }
  Poly result = *a;
  for (size_t i = 0; i < result.size(); ++i) {
    if (node.op == "Div") result[i] /= (*b)[0];
    else result[i] += node.op == "Add" ? (*b)[i] : -(*b)[i];
  }
  return node.op == "Div" && (!constant || (*b)[0] == 0) ? std::nullopt : std::optional(result);
}

// Returns the factor if `v` is factor * x with a factor other than 0.
std::optional<double> FactorOf(Match* m, ValueId v, ValueId x) {
  const auto p = PolyOf(m, v, x);
  if (!p || (*p)[0] != 0 || (*p)[1] == 0 || (*p)[2] != 0 || (*p)[3] != 0) return std::nullopt;
  return (*p)[1];
}

// A tree of Mul nodes, and of Div by constants, as a product.
struct MulTree {
  double constant = 1;
  std::vector<ValueId> factors;
};

// Returns false if there are too many factors. Below the root, only values without other uses are
// decomposed.
bool Collect(Match* m, const Node& node, MulTree* product, int depth = 0) {
  const auto add = [&](ValueId v) {
    const auto n = m->r.Producer(v);
    const bool apart =
        n && m->r.uses(v) == 1 && depth < kMaxDepth && (m->r.Is(*n, "Mul") || m->r.Is(*n, "Div"));
    if (apart && (m->r.Is(*n, "Mul") || WithScalar(m->r, m->r.node(*n), true))) {
      m->inner.push_back(*n);
      return Collect(m, m->r.node(*n), product, depth + 1);
    }
    product->factors.push_back(v);
    return product->factors.size() <= kMaxFactors;
  };
  if (const auto scaled = WithScalar(m->r, node, node.op == "Div")) {
    product->constant = node.op == "Mul" ? product->constant * scaled->constant
                                         : product->constant / scaled->constant;
    return add(scaled->x);
  }
  return node.op == "Mul" && add(node.inputs[0]) && add(node.inputs[1]);
}

// ---- activations --------------------------------------------------------------------------------

struct Activation {
  std::string_view op;
  AttrList attrs;
};

// Matches factor * x * (1 + erf(x / sqrt 2)) and factor * x * (1 + tanh(sqrt(2 / pi) * (x +
// 0.044715 x^3))).
std::optional<Activation> AsGelu(Match* m, ValueId x, ValueId g, double factor) {
  const auto sum = NearlyEqual(factor, 0.5) ? m->TakeWithScalar(g, "Add") : std::nullopt;
  if (!sum || sum->constant != 1) return std::nullopt;
  if (const Node* erf = m->Take(sum->x, "Erf")) {
    const auto k = FactorOf(m, erf->inputs[0], x);
    return k && NearlyEqual(*k, std::numbers::sqrt2 / 2) ? std::optional(Activation{"Gelu", {}})
                                                         : std::nullopt;
  }
  const Node* tanh = m->Take(sum->x, "Tanh");
  const auto p = tanh != nullptr ? PolyOf(m, tanh->inputs[0], x) : std::nullopt;
  const double k = std::sqrt(2 * std::numbers::inv_pi);
  if (!p || (*p)[0] != 0 || (*p)[2] != 0 || !NearlyEqual((*p)[1], k) ||
      !NearlyEqual((*p)[3], k * 0.044715))
    return std::nullopt;
  return Activation{"Gelu", {{"approximate", std::string("tanh")}}};
}

// Matches factor * Clip(a x + b, 0, high) as HardSigmoid. Returns alpha and beta.
std::optional<std::pair<double, double>> AsHardSigmoid(Match* m, ValueId x, ValueId g,
                                                       double factor) {
  const Node* clip = m->Take(g, "Clip");
  ValueId in = kNoValue;
  const auto bounds = clip != nullptr ? BoundsOf(m->r, *clip, &in) : std::nullopt;
  if (!bounds || bounds->low != 0 || !NearlyEqual(bounds->high * factor, 1)) return std::nullopt;
  const auto p = PolyOf(m, in, x);
  if (!p || (*p)[1] == 0 || (*p)[2] != 0 || (*p)[3] != 0) return std::nullopt;
  return std::pair((*p)[1] * factor, (*p)[0] * factor);
}

std::optional<Activation> AsHardSwish(Match* m, ValueId x, ValueId g, double factor) {
  std::optional<std::pair<double, double>> line;
  if (const Node* hard = m->Take(g, "HardSigmoid")) {
    const NodeView view(m->r.graph(), *hard);
    if (hard->inputs[0] == x && factor == 1)
      line = {view.op().Float("alpha"), view.op().Float("beta")};
  } else {
    line = AsHardSigmoid(m, x, g, factor);
  }
  if (!line || !NearlyEqual(line->first, 1.0 / 6) || !NearlyEqual(line->second, 0.5))
    return std::nullopt;
  return Activation{"HardSwish", {}};
}

std::optional<Activation> AsSwishOrMish(Match* m, ValueId x, ValueId g, double factor) {
  if (factor != 1) return std::nullopt;
  if (const Node* sigmoid = m->Take(g, "Sigmoid")) {
    const auto alpha = FactorOf(m, sigmoid->inputs[0], x);
    if (!alpha) return std::nullopt;
    return *alpha == 1 ? Activation{"Swish", {}} : Activation{"Swish", {{"alpha", *alpha}}};
  }
  const Node* tanh = m->Take(g, "Tanh");
  const Node* softplus = tanh != nullptr ? m->Take(tanh->inputs[0], "Softplus") : nullptr;
  return softplus != nullptr && softplus->inputs[0] == x ? std::optional(Activation{"Mish", {}})
                                                         : std::nullopt;
}

bool IsReal(const Rewriter& r, ValueId v) {
  return r.type(v).dtype == DType::kF32 || r.type(v).dtype == DType::kF64;
}

// Recognises x * g(x).
bool RecognizeProduct(Rewriter* r, size_t n, const Match& product_nodes, const MulTree& product) {
  for (size_t i = 0; i < 2; ++i) {
    const ValueId x = product.factors[i], g = product.factors[1 - i];
    for (const auto form : {AsGelu, AsHardSwish, AsSwishOrMish}) {
      Match m = product_nodes;
      auto found = form(&m, x, g, product.constant);
      if (found && m.OnlyFeeds(n)) return r->Replace(n, found->op, {x}, std::move(found->attrs));
    }
  }
  return false;
}

// Returns the x of factor * Clip(a x + b, ...), found upwards through nodes with a scalar.
ValueId ArgumentOf(const Rewriter& r, ValueId v) {
  for (int i = 0; i < kMaxDepth; ++i) {
    const auto n = r.Producer(v);
    if (!n || !r.IsLive(*n) || r.uses(v) != 1) return v;
    const Node& node = r.node(*n);
    if (node.op != "Add" && node.op != "Sub" && node.op != "Mul" && node.op != "Div") return v;
    const auto scaled = WithScalar(r, node, node.op == "Sub" || node.op == "Div");
    if (!scaled) return v;
    v = scaled->x;
  }
  return v;
}

bool RecognizeHardSigmoid(Rewriter* r, size_t n, Match m, const MulTree& product) {
  const auto clip = r->Producer(product.factors[0], "Clip");
  if (!clip) return false;
  const ValueId x = ArgumentOf(*r, r->node(*clip).inputs[0]);
  const auto line = AsHardSigmoid(&m, x, product.factors[0], product.constant);
  if (!line || !m.OnlyFeeds(n)) return false;
  return r->Replace(n, "HardSigmoid", {x}, {{"alpha", line->first}, {"beta", line->second}});
}

bool Recognize(Rewriter* r, size_t n) {
  if ((!r->Is(n, "Mul") && !r->Is(n, "Div")) || !IsReal(*r, r->node(n).outputs[0])) return false;
  Match m(*r);
  MulTree product;
  if (!Collect(&m, r->node(n), &product) || !std::isfinite(product.constant)) return false;
  if (product.factors.size() == 1) return RecognizeHardSigmoid(r, n, std::move(m), product);
  return product.factors.size() == 2 && RecognizeProduct(r, n, m, product);
}

}  // namespace

Status RecognizeActivations(const PassContext& context, Graph* graph) {
  Rewriter r(context, graph);
  for (size_t n = 0; n < r.node_count(); ++n) {
    if (r.IsLive(n)) SimplifyClip(&r, n);
  }
  // From the end: the last node of a chain is its root.
  for (size_t n = r.node_count(); n-- > 0;) Recognize(&r, n);
  return OkStatus();
}

}  // namespace msrt
