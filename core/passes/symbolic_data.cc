// SymbolicShapes: the elements of small integer tensors, which are shapes of others, op by op.
#include <algorithm>

#include "core/passes/symbolic_shapes.h"
#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

DimProduct Equals(const DimProduct& a, const DimProduct& b) {
  if (a == b) return DimProduct::Number(1);
  const auto differ = [](const DimProduct& x, const DimProduct& y) {
    return (x.number() && y.number()) || (x.IsNeverNegative() && y.number() && *y.number() < 0);
  };
  return differ(a, b) || differ(b, a) ? DimProduct::Number(0) : DimProduct::Unknown();
}

std::optional<DimProducts> Sliced(const OpView& op, const DimProducts& list) {
  const auto starts = IntsAttrOrInput(op, "starts", 1), ends = IntsAttrOrInput(op, "ends", 2),
             steps = IntsAttrOrInput(op, "steps", 4);
  if (!starts || !ends || !steps || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  if (!steps->empty() && (*steps)[0] != 1) return std::nullopt;
  const auto size = static_cast<int64_t>(list.size());
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t begin = clamp((*starts)[0]), end = std::max(begin, clamp((*ends)[0]));
  return DimProducts(list.begin() + begin, list.begin() + end);
}

std::optional<DimProducts> Gathered(const OpView& op, const DimProducts& list,
                                    const DimProducts& indices) {
  if (op.input(0).rank() != 1) return std::nullopt;
  DimProducts out;
  for (const DimProduct& index : indices) {
    const auto i = index.number();
    const auto size = static_cast<int64_t>(list.size());
    if (!i || *i < -size || *i >= size) return std::nullopt;
    out.push_back(list[static_cast<size_t>(*i < 0 ? *i + size : *i)]);
  }
  return out;
}

std::optional<DimProducts> ShapeOf(const OpView& op, const DimProducts& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = clamp(op.Int("start")), end = op.Has("end") ? clamp(op.Int("end")) : rank;
  return DimProducts(dims.begin() + begin, dims.begin() + std::max(begin, end));
}

DimProduct ProductOf(const DimProducts& list) {
  DimProduct product = DimProduct::Number(1);
  for (const DimProduct& p : list) product = product.Times(p);
  return product;
}

// A number must fit into the type it is cast to. A dim fits in every run that succeeds.
bool FitsInto(DType dtype, const DimProducts& list) {
  if (dtype == DType::kI64) return true;
  return dtype == DType::kI32 && std::all_of(list.begin(), list.end(), [](const DimProduct& p) {
           return !p.number() || (*p.number() >= INT32_MIN && *p.number() <= INT32_MAX);
         });
}

}  // namespace

std::optional<DimProducts> SymbolicShapes::DataOf(const Node& node) {
  const NodeView view(graph_, node);
  const OpView& op = view.op();
  if (node.op == "Shape")
    return dims(node.inputs[0]) ? ShapeOf(op, *dims(node.inputs[0])) : std::nullopt;
  if (node.op == "Size")
    return dims(node.inputs[0]) ? std::optional(DimProducts{ProductOf(*dims(node.inputs[0]))})
                                : std::nullopt;
  DimProducts joined;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    // Lists in attributes are read through the view.
    if (!data(v)) return std::nullopt;
    joined.insert(joined.end(), data(v)->begin(), data(v)->end());
  }
  const DimProducts& first = *data(node.inputs[0]);
  if (node.op == "Concat") return joined;
  if (node.op == "Identity" || node.op == "Unsqueeze" || node.op == "Squeeze" ||
      node.op == "Reshape")
    return first;
  if (node.op == "Cast")
    return FitsInto(op.Dtype("to"), first) && kIndexTypes.Has(op.input(0).dtype)
               ? std::optional(first)
               : std::nullopt;
  if (node.op == "Slice") return Sliced(op, first);
  if (node.op == "Gather") return Gathered(op, first, *data(node.inputs[1]));
  if (node.op == "ReduceProd")
    return op.Int("noop_with_empty_axes") == 0 ? std::optional(DimProducts{ProductOf(first)})
                                               : std::nullopt;
  return PairwiseData(node);
}

// Handles ops of two lists, or of a condition and two lists.
std::optional<DimProducts> SymbolicShapes::PairwiseData(const Node& node) {
  size_t longest = 1;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) return std::nullopt;
    longest = data(v)->size() == 1 ? longest : data(v)->size();
  }
  for (ValueId v : node.inputs) {
    if (data(v)->size() != 1 && data(v)->size() != longest) return std::nullopt;
  }
  const auto at = [&](size_t input, size_t i) -> const DimProduct& {
    const DimProducts& list = *data(node.inputs[input]);
    return list[list.size() == 1 ? 0 : i];
  };
  const auto element = [&](size_t i) -> std::optional<DimProduct> {
    if (node.op == "Add") return Sum(at(0, i), at(1, i));
    if (node.op == "Sub") return Difference(at(0, i), at(1, i));
    if (node.op == "Mul") return at(0, i).Times(at(1, i));
    if (node.op == "Div") return Quotient(at(0, i), at(1, i));
    if (node.op == "Equal") return Equals(at(0, i), at(1, i));
    if (node.op != "Where") return std::nullopt;
    const auto chosen = at(0, i).number();
    return !chosen ? DimProduct::Unknown() : *chosen != 0 ? at(1, i) : at(2, i);
  };
  DimProducts out;
  for (size_t i = 0; i < longest; ++i) {
    const auto found = element(i);
    if (!found) return std::nullopt;
    out.push_back(*found);
  }
  return out;
}

}  // namespace msrt
