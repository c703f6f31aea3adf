#include "core/passes/symbolic_shapes.h"

#include <algorithm>

#include "core/passes/rewrite.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr int64_t kMaxFollowed = 64;  // elements of a tensor that is followed
constexpr size_t kMaxTerms = 256;     // few networks have more than a dozen

}  // namespace

bool HasOpenDims(const Graph& graph) {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    const Dims& dims = graph.value(ValueId(v)).type.dims;
    if (std::find(dims.begin(), dims.end(), kUnknownDim) != dims.end()) return true;
  }
  return false;
}

// ---- terms --------------------------------------------------------------------------------------

DimProduct SymbolicShapes::Named(const Term& term) {
  if (!term.a.known() || (term.kind != Term::kWindows && !term.b.known()))
    return DimProduct::Unknown();
  const bool ordered = term.kind == Term::kQuotient || term.kind == Term::kWindows;
  const auto same = [&](const Term& t) {
    if (t.kind != term.kind || t.room != term.room || t.stride != term.stride) return false;
    if (term.kind == Term::kWindows) return t.a == term.a;
    return (t.a == term.a && t.b == term.b) || (!ordered && t.a == term.b && t.b == term.a);
  };
  const auto it = std::find_if(terms_.begin(), terms_.end(), same);
  if (it != terms_.end()) return DimProduct::Term(static_cast<size_t>(it - terms_.begin()));
  if (terms_.size() == kMaxTerms) return DimProduct::Unknown();
  terms_.push_back(term);
  return DimProduct::Term(terms_.size() - 1);
}

DimProduct SymbolicShapes::WindowsOver(const DimProduct& dim, int64_t room, int64_t stride) {
  if (stride == 1 && room == -1) return dim;
  return Named({Term::kWindows, dim, {}, room, stride});
}

// A sum with a negative number is unknown: terms are dims, which are never negative.
DimProduct SymbolicShapes::Sum(const DimProduct& a, const DimProduct& b) {
  const DimProduct sum = a.Plus(b, 1);
  if (sum.known() || !a.IsNeverNegative() || !b.IsNeverNegative()) return sum;
  return Named({Term::kSum, a, b});
}

DimProduct SymbolicShapes::Difference(const DimProduct& a, const DimProduct& b) {
  if (const auto t = a.term(); t && terms_[*t].kind == Term::kSum) {
    if (terms_[*t].a == b) return terms_[*t].b;
    if (terms_[*t].b == b) return terms_[*t].a;
  }
  return a.Plus(b, -1);
}

DimProduct SymbolicShapes::Quotient(const DimProduct& a, const DimProduct& b) {
  const DimProduct exact = a.Over(b);
  if (exact.known() || !a.IsNeverNegative() || !b.IsNeverNegative() || (a.number() && b.number()))
    return exact;
  return Named({Term::kQuotient, a, b});
}

DimProduct SymbolicShapes::Smaller(const DimProduct& a, const DimProduct& b) {
  if (a.number() && b.number()) return DimProduct::Number(std::min(*a.number(), *b.number()));
  if (a == b) return a;
  return a.IsNeverNegative() && b.IsNeverNegative() ? Named({Term::kSmaller, a, b})
                                                    : DimProduct::Unknown();
}

// In runs that succeed, a number other than 1 is the result. A dim also wins over the minimum of
// itself and a number above 1, which is 1 only if the dim is.
DimProduct SymbolicShapes::BroadcastDim(const DimProduct& a, const DimProduct& b) {
  if (a == b) return a;
  const auto beats = [&](const DimProduct& x, const DimProduct& y) {
    if (y.number() == 1 || (x.number() && *x.number() != 1)) return true;
    const auto t = y.term();
    if (!t || terms_[*t].kind != Term::kSmaller) return false;
    const Term& term = terms_[*t];
    const auto exceeds_one = [](const DimProduct& p) { return p.number() && *p.number() > 1; };
    return (term.a == x && exceeds_one(term.b)) || (term.b == x && exceeds_one(term.a));
  };
  if (beats(a, b)) return a;
  if (beats(b, a)) return b;
  return Named({Term::kBroadcast, a, b});
}

DimProducts SymbolicShapes::Broadcast(const DimProducts& a, const DimProducts& b) {
  const size_t rank = std::max(a.size(), b.size());
  const auto at = [&](const DimProducts& d, size_t i) {
    return i + d.size() < rank ? DimProduct::Number(1) : d[i + d.size() - rank];
  };
  DimProducts out;
  for (size_t i = 0; i < rank; ++i) out.push_back(BroadcastDim(at(a, i), at(b, i)));
  return out;
}

// ---- values -------------------------------------------------------------------------------------

SymbolicShapes::SymbolicShapes(const Graph& graph)
    : graph_(graph), dims_(graph.value_count()), data_(graph.value_count()) {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    Declare(ValueId(v));
    const ConstTensor* c = graph.value(ValueId(v)).constant.get();
    if (c == nullptr || !kIndexTypes.Has(c->dtype) || c->dims.rank() > 1 ||
        c->dims.elements() > kMaxFollowed)
      continue;
    DimProducts numbers;
    for (int64_t n : IntValues(*c)) numbers.push_back(DimProduct::Number(n));
    data_[v] = std::move(numbers);
  }
}

void SymbolicShapes::Declare(ValueId v) {
  const Type& type = graph_.value(v).type;
  if (!type.is_tensor() || !type.rank_known) return;
  DimProducts dims;
  for (int i = 0; i < type.rank(); ++i) dims.push_back(DimProduct::Dim(type.dims[i], v, i));
  dims_[IndexOf(v)] = std::move(dims);
}

void SymbolicShapes::Follow(const Node& node) {
  if (node.def == nullptr || node.outputs.empty() || node.inputs.empty() ||
      node.inputs[0] == kNoValue)
    return;
  if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                   [&](ValueId v) { return v == kNoValue || has(v); }))
    return;
  FollowDims(node);
  if (node.domain.empty() && has(node.outputs[0])) FollowData(node);
}

// Known dims of the type stay; open dims are replaced by the products that were found.
void SymbolicShapes::FollowDims(const Node& node) {
  const auto found = DimsOf(node);
  if (!found) return;
  const size_t outputs = node.op == "Split" ? node.outputs.size() : 1;
  for (size_t o = 0; o < outputs; ++o) {
    if (!has(node.outputs[o])) continue;
    auto& dims = dims_[IndexOf(node.outputs[o])];
    if (!dims || dims->size() != found->size()) continue;
    for (size_t i = 0; i < found->size(); ++i) {
      if (!(*dims)[i].dim() && (*found)[i].known()) (*dims)[i] = (*found)[i];
    }
  }
}

void SymbolicShapes::FollowData(const Node& node) {
  const ValueId out = node.outputs[0];
  const Type& type = graph_.value(out).type;
  const bool followed = kIndexTypes.Has(type.dtype) || type.dtype == DType::kBool;
  if (data(out) || !followed || !type.rank_known || type.rank() > 1) return;
  auto found = DataOf(node);
  const int64_t elements = type.rank() == 0 ? 1 : type.dims[0];
  if (found && static_cast<int64_t>(found->size()) == elements && elements <= kMaxFollowed)
    data_[IndexOf(out)] = std::move(found);
}

void SymbolicShapes::FollowAll() {
  for (const Node& node : graph_.nodes) Follow(node);
}
// ---- ProvenDims ---------------------------------------------------------------------------------

ProvenDims::ProvenDims(const Graph& graph) : graph_(graph) {
  if (!HasOpenDims(graph)) return;
  shapes_.emplace(graph);
  shapes_->FollowAll();
}

bool ProvenDims::Equal(ValueId a, int a_axis, ValueId b, int b_axis) const {
  const Type &x = graph_.value(a).type, &y = graph_.value(b).type;
  if (!x.rank_known || !y.rank_known || a_axis >= x.rank() || b_axis >= y.rank()) return false;
  if (ProvenEqual(x.dims[a_axis], y.dims[b_axis])) return true;
  if (!shapes_ || !shapes_->has(a) || !shapes_->has(b) || !shapes_->dims(a) || !shapes_->dims(b))
    return false;
  return (*shapes_->dims(a))[static_cast<size_t>(a_axis)] ==
         (*shapes_->dims(b))[static_cast<size_t>(b_axis)];
}

bool ProvenDims::Equal(ValueId a, ValueId b) const {
  const Type &x = graph_.value(a).type, &y = graph_.value(b).type;
  if (!x.is_tensor() || !y.is_tensor() || x.dtype != y.dtype || !x.rank_known || !y.rank_known ||
      x.rank() != y.rank())
    return false;
  for (int i = 0; i < x.rank(); ++i) {
    if (!Equal(a, i, b, i)) return false;
  }
  return true;
}

}  // namespace msrt
