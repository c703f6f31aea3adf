#include "core/passes/same_graph.h"

#include <algorithm>

#include "ops/op_def.h"

namespace msrt {
namespace {

constexpr size_t kMaxSameBytes = 4096;

bool SameAttrs(const AttrList& a, const AttrList& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&](const Attr& attr) {
    const AttrValue* other = b.Find(attr.name);
    if (other == nullptr || other->index() != attr.value.index()) return false;
    return std::visit(
        [&](const auto& x) {
          const auto& y = std::get<std::decay_t<decltype(x)>>(*other);
          if constexpr (std::is_same_v<std::decay_t<decltype(x)>, ConstTensor>)
            return SameConstant(x, y);
          else return x == y;
        },
        attr.value);
  });
}

// Pairs the values of two graphs in the order in which they occur.
class Pairing {
 public:
  Pairing(const Graph& a, const Graph& b) : a_(a), b_(b), partner_(a.value_count(), kNoValue) {}

  void Bind(ValueId a, ValueId b) { partner_[IndexOf(a)] = b; }
  bool Same(ValueId a, ValueId b) const {
    if (a == kNoValue || b == kNoValue) return a == b;
    const ConstTensor *x = a_.value(a).constant.get(), *y = b_.value(b).constant.get();
    if (x != nullptr && y != nullptr) return SameConstant(*x, *y);
    return x == nullptr && y == nullptr && partner_[IndexOf(a)] == b;
  }
  bool SameValues(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](ValueId x, ValueId y) { return Same(x, y); });
  }
  bool SameType(ValueId a, ValueId b) const { return a_.value(a).type == b_.value(b).type; }

 private:
  const Graph &a_, &b_;
  std::vector<ValueId> partner_;  // by value of the first
};

bool SameNode(const Node& a, const Node& b, const Pairing& pairing) {
  const bool by_name = !IsPure(a);
  return a.op == b.op && a.domain == b.domain && a.version == b.version &&
         (!by_name || a.name == b.name) && a.outputs.size() == b.outputs.size() &&
         pairing.SameValues(a.inputs, b.inputs) && SameAttrs(a.attrs, b.attrs);
}

}  // namespace

bool SameConstant(const ConstTensor& a, const ConstTensor& b) {
  if (!(a.type() == b.type())) return false;
  if (a.bytes.data() == b.bytes.data()) return true;
  return a.bytes.size() <= kMaxSameBytes &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

bool SameGraph(const Graph& a, const Graph& b) {
  if (&a == &b) return true;
  if (a.inputs.size() != b.inputs.size() || a.nodes.size() != b.nodes.size()) return false;
  Pairing pairing(a, b);
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (!pairing.SameType(a.inputs[i], b.inputs[i])) return false;
    pairing.Bind(a.inputs[i], b.inputs[i]);
  }
  for (size_t n = 0; n < a.nodes.size(); ++n) {
    const Node &x = a.nodes[n], &y = b.nodes[n];
    if (!SameNode(x, y, pairing)) return false;
    for (size_t i = 0; i < x.outputs.size(); ++i) {
      if ((x.outputs[i] == kNoValue) != (y.outputs[i] == kNoValue)) return false;
      if (x.outputs[i] != kNoValue) pairing.Bind(x.outputs[i], y.outputs[i]);
    }
  }
  return pairing.SameValues(a.outputs, b.outputs);
}

}  // namespace msrt
