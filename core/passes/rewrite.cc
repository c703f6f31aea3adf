#include "core/passes/rewrite.h"

#include <algorithm>
#include <cmath>

#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"

namespace msrt {

bool ProvenEqual(int64_t a, int64_t b) { return a == b && a != kUnknownDim; }

bool ProvenEqual(const Type& a, const Type& b) {
  return a.is_tensor() && b.is_tensor() && a.dtype == b.dtype && a.rank_known && b.rank_known &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(),
                    [](int64_t x, int64_t y) { return ProvenEqual(x, y); });
}

Rewriter::Rewriter(const PassContext& context, Graph* graph)
    : context_(context), graph_(graph), gone_(graph->nodes.size()) {
  Grow();
  for (size_t n = 0; n < node_count(); ++n) {
    anchor_.push_back(n);
    pieces_.push_back(IsPiece(node(n)));
    AddUses(n);
  }
  for (ValueId v : graph_->outputs) {
    ++uses_[IndexOf(v)];
    is_output_[IndexOf(v)] = true;
  }
}

void Rewriter::Grow() {
  producers_.resize(graph_->value_count(), -1);
  users_.resize(graph_->value_count());
  uses_.resize(graph_->value_count());
  is_output_.resize(graph_->value_count());
}

ValueId Rewriter::AddConstant(std::string name, ConstTensor data) {
  const ValueId v = graph_->AddConstant(std::move(name), std::move(data));
  Grow();
  return v;
}

void Rewriter::AddUses(size_t n) {
  for (ValueId v : node(n).inputs) {
    if (v == kNoValue) continue;
    ++uses_[IndexOf(v)];
    if (constant(v) == nullptr) users_[IndexOf(v)].push_back(static_cast<uint32_t>(n));
  }
  for (ValueId v : node(n).outputs) {
    if (v != kNoValue) producers_[IndexOf(v)] = static_cast<int32_t>(n);
  }
}

void Rewriter::RemoveUses(size_t n) {
  for (ValueId v : node(n).inputs) {
    if (v != kNoValue) --uses_[IndexOf(v)];
  }
}

std::optional<size_t> Rewriter::Producer(ValueId v) const {
  if (v == kNoValue || producers_[IndexOf(v)] < 0) return std::nullopt;
  return static_cast<size_t>(producers_[IndexOf(v)]);
}

std::optional<size_t> Rewriter::Producer(ValueId v, std::string_view op) const {
  const auto n = Producer(v);
  return n && Is(*n, op) && node(*n).outputs.size() == 1 ? n : std::nullopt;
}

std::optional<size_t> Rewriter::SoleUser(ValueId v) const {
  if (uses(v) != 1 || IsOutput(v)) return std::nullopt;
  for (uint32_t user : users_[IndexOf(v)]) {
    const std::vector<ValueId>& inputs = node(user).inputs;
    if (!gone_[user] && std::find(inputs.begin(), inputs.end(), v) != inputs.end()) return user;
  }
  return std::nullopt;
}

bool Rewriter::OnlyFeed(std::span<const size_t> inner, size_t root) const {
  const auto uses_by = [&](size_t n, ValueId v) {
    return static_cast<size_t>(std::count(node(n).inputs.begin(), node(n).inputs.end(), v));
  };
  for (size_t n : inner) {
    for (ValueId v : node(n).outputs) {
      if (v == kNoValue) continue;
      size_t inside = uses_by(root, v);
      for (size_t m : inner) inside += uses_by(m, v);
      if (inside != uses(v)) return false;
    }
  }
  return true;
}

Node Rewriter::MakeNode(std::string_view domain, std::string_view op, std::vector<ValueId> inputs,
                        AttrList attrs) const {
  Node node;
  node.domain = domain;
  node.op = op;
  node.def = FindOp(domain, op, context_.ops);
  MSRT_CHECK(node.def != nullptr);
  node.version = node.def->version;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return node;
}

std::optional<Type> Rewriter::TypeOf(const Node& node) const {
  std::vector<Type> types(1);
  if (!InferTypes(*node.def, NodeView(*graph_, node).op(), types).ok()) return std::nullopt;
  return std::move(types[0]);
}

ValueId Rewriter::Add(size_t before, std::string_view op, std::vector<ValueId> inputs,
                      AttrList attrs, std::string_view domain) {
  MSRT_CHECK(anchor_[before] == before);
  Node added = MakeNode(domain, op, std::move(inputs), std::move(attrs));
  added.name = StrCat(node(before).name, ".", op);
  const std::optional<Type> type = TypeOf(added);
  if (!type) return kNoValue;
  const ValueId out = graph_->AddValue(added.name, *type);
  Grow();
  added.outputs = {out};
  graph_->nodes.push_back(std::move(added));
  gone_.push_back(false);
  pieces_.push_back(false);
  anchor_.push_back(before);
  AddUses(node_count() - 1);
  changed_ = true;
  return out;
}

bool Rewriter::Replace(size_t n, std::string_view op, std::vector<ValueId> inputs, AttrList attrs,
                       std::string_view domain) {
  Node next = MakeNode(domain, op, std::move(inputs), std::move(attrs));
  const ValueId out = node(n).outputs[0];
  next.name = node(n).name;
  next.outputs = {out};
  const std::optional<Type> type = TypeOf(next);
  if (!type) return false;
  auto merged = MergeTypes(*type, this->type(out));
  if (!merged.ok()) return false;
  Refine(out, *std::move(merged));
  std::vector<ValueId> released = node(n).inputs;
  RemoveUses(n);
  graph_->nodes[n] = std::move(next);
  AddUses(n);
  DropUnused(std::move(released));
  changed_ = true;
  return true;
}

void Rewriter::Refine(ValueId v, Type type) {
  if (!IsOutput(v)) graph_->value(v).type = std::move(type);
}

void Rewriter::DropUnused(std::vector<ValueId> released) {
  while (!released.empty()) {
    const auto n = Producer(released.back());
    released.pop_back();
    if (!n || gone_[*n] || !IsPure(node(*n))) continue;
    const std::vector<ValueId>& outputs = node(*n).outputs;
    if (std::any_of(outputs.begin(), outputs.end(),
                    [&](ValueId v) { return v != kNoValue && uses(v) != 0; }))
      continue;
    gone_[*n] = true;
    RemoveUses(*n);
    released.insert(released.end(), node(*n).inputs.begin(), node(*n).inputs.end());
  }
}

void Rewriter::MoveUses(ValueId from, ValueId to) {
  const std::vector<uint32_t> users = std::move(users_[IndexOf(from)]);
  users_[IndexOf(from)].clear();
  for (uint32_t user : users) {
    if (gone_[user]) continue;
    for (ValueId& v : graph_->nodes[user].inputs) {
      if (v != from) continue;
      v = to;
      --uses_[IndexOf(from)];
      ++uses_[IndexOf(to)];
      users_[IndexOf(to)].push_back(user);
    }
  }
}

bool Rewriter::Forward(size_t n, ValueId to) {
  const ValueId from = node(n).outputs[0];
  auto merged = MergeTypes(type(to), type(from));
  if (!merged.ok() || from == to) return false;
  const auto producer = Producer(to);
  const bool named = IsOutput(from);
  // The producer of `to` makes the output instead, unless `to` is an output with its own name.
  if (named && (!producer || IsOutput(to))) return false;
  RemoveUses(n);
  gone_[n] = true;
  changed_ = true;
  const ValueId kept = named ? from : to;
  Refine(kept, *std::move(merged));
  MoveUses(named ? to : from, kept);
  if (named) {
    std::vector<ValueId>& outputs = graph_->nodes[*producer].outputs;
    *std::find(outputs.begin(), outputs.end(), to) = from;
    producers_[IndexOf(from)] = static_cast<int32_t>(*producer);
    producers_[IndexOf(to)] = -1;
  }
  std::vector<ValueId> released = node(n).inputs;
  released.push_back(kept);
  DropUnused(std::move(released));
  return true;
}

bool Rewriter::SetConstant(size_t n, ConstTensor data) {
  Value& value = graph_->value(node(n).outputs[0]);
  if (!IsPure(node(n)) || !(value.type == data.type())) return false;
  value.constant = std::make_shared<const ConstTensor>(std::move(data));
  gone_[n] = true;
  changed_ = true;
  producers_[IndexOf(node(n).outputs[0])] = -1;
  RemoveUses(n);
  DropUnused(node(n).inputs);
  return true;
}

// Nodes that were added before the same node stay in the order in which they were added.
std::vector<size_t> Rewriter::Order() const {
  std::vector<size_t> order;
  for (size_t n = 0; n < node_count(); ++n) {
    if (!gone_[n]) order.push_back(n);
  }
  const auto added = [&](size_t n) { return anchor_[n] != n; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return anchor_[a] != anchor_[b] ? anchor_[a] < anchor_[b] : added(a) && !added(b);
  });
  return order;
}

void Rewriter::InferAgain() {
  std::vector<Type> types;
  for (size_t n : Order()) {
    const Node& node = graph_->nodes[n];
    if (node.def == nullptr) continue;
    types.assign(node.outputs.size(), Type());
    if (!InferTypes(*node.def, NodeView(*graph_, node).op(), types, /*check_attrs=*/false).ok())
      continue;
    for (size_t i = 0; i < types.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      auto merged = MergeTypes(types[i], type(node.outputs[i]));
      if (merged.ok()) Refine(node.outputs[i], *std::move(merged));
    }
  }
}

void Rewriter::Finish() {
  if (!changed_) return;
  changed_ = false;
  std::vector<Node> nodes;
  for (size_t n : Order()) nodes.push_back(std::move(graph_->nodes[n]));
  graph_->nodes = std::move(nodes);
}

// ---- patterns -----------------------------------------------------------------------------------

const Node* Match::Take(ValueId v, std::string_view op) {
  const auto n = r.Producer(v, op);
  if (!n) return nullptr;
  if (std::find(inner.begin(), inner.end(), *n) == inner.end()) inner.push_back(*n);
  return &r.node(*n);
}

std::optional<Match::ScalarOperands> Match::TakeWithScalar(ValueId v, std::string_view op,
                                                           bool ordered) {
  const size_t before = inner.size();
  const Node* node = Take(v, op);
  if (node == nullptr) return std::nullopt;
  const auto scaled = WithScalar(r, *node, ordered);
  if (!scaled) inner.resize(before);
  return scaled;
}

std::optional<double> ScalarOf(const Rewriter& r, ValueId v) {
  const ConstTensor* t = v == kNoValue ? nullptr : r.constant(v);
  if (t == nullptr || t->dims.elements() != 1) return std::nullopt;
  switch (t->dtype) {
    case DType::kF32:
      return t->As<float>()[0];
    case DType::kF64:
      return t->As<double>()[0];
    case DType::kI32:
      return t->As<int32_t>()[0];
    case DType::kI64:
      return static_cast<double>(t->As<int64_t>()[0]);
    default:
      return std::nullopt;
  }
}

bool KeepsDims(const Type& c, const Type& x) {
  return c.rank() == 0 || (x.rank_known && c.rank() <= x.rank());
}

std::optional<Match::ScalarOperands> WithScalar(const Rewriter& r, const Node& node, bool ordered) {
  if (node.inputs.size() != 2) return std::nullopt;
  for (size_t c = 2; c-- > (ordered ? 1u : 0u);) {
    const auto value = ScalarOf(r, node.inputs[c]);
    const ValueId x = node.inputs[1 - c];
    if (value && r.constant(x) == nullptr && KeepsDims(r.type(node.inputs[c]), r.type(x)))
      return Match::ScalarOperands{x, *value};
  }
  return std::nullopt;
}

bool NearlyEqual(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

}  // namespace msrt
