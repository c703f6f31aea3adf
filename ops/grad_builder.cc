#include "ops/grad_builder.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/half.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// The bytes of a number in an element type.
Result<ConstTensor> ScalarConstant(DType dtype, double number) {
  const auto of = [&](auto value) {
    return ConstTensor::Copy(dtype, {}, std::as_bytes(std::span(&value, 1)));
  };
  switch (dtype) {
    case DType::kF64:
      return of(number);
    case DType::kF32:
      return of(static_cast<float>(number));
    case DType::kF16:
      return of(Half(static_cast<float>(number)).bits);
    case DType::kBF16:
      return of(BFloat16(static_cast<float>(number)).bits);
    case DType::kI64:
      return of(static_cast<int64_t>(number));
    case DType::kI32:
      return of(static_cast<int32_t>(number));
    default:
      return Unsupported("gradients cannot be computed in ", dtype);
  }
}

}  // namespace

GradBuilder::GradBuilder(Graph* graph, const Node& node, std::vector<ValueId> output_grads,
                         std::vector<bool> wanted, const OpSet* ops, AddGradientsFn add_gradients)
    : graph_(graph),
      node_(node),
      grads_(std::move(output_grads)),
      wanted_(std::move(wanted)),
      ops_(ops),
      add_gradients_(std::move(add_gradients)),
      first_node_(graph->nodes.size()),
      view_(node_.domain, node_.op, node_.name, &node_.attrs,
            node_.def != nullptr ? node_.def->attrs : std::span<const AttrDef>(), {}, {}),
      input_grads_(node_.inputs.size(), kNoValue) {
  // Adding values moves the types of the graph, so the rule sees copies.
  types_.reserve(node_.inputs.size() + node_.outputs.size());
  const auto copy = [&](ValueId v) -> const Type* {
    return v == kNoValue ? nullptr : &types_.emplace_back(graph->value(v).type);
  };
  for (ValueId v : node_.inputs) {
    input_types_.push_back(copy(v));
    held_.push_back(v == kNoValue ? nullptr : graph->value(v).constant);
    constants_.push_back(held_.back().get());
  }
  for (ValueId v : node_.outputs) output_types_.push_back(copy(v));
  view_ = view_.WithTypes(input_types_, output_types_, constants_);
  if (node_.def != nullptr && node_.def->custom != nullptr)
    view_ = view_.WithCustom(node_.def->custom);
}

ValueId GradBuilder::GradOrZeros(size_t o) {
  return grad(o) != kNoValue ? grad(o) : Zeros(output(o));
}

void GradBuilder::Set(size_t i, ValueId gradient) { input_grads_[i] = gradient; }

void GradBuilder::SetByComposition(const std::vector<ValueId>& outputs) {
  if (!ok()) return;
  std::vector<ValueId> of, seeds, with_respect_to;
  std::vector<size_t> inputs;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] == kNoValue || grad(o) == kNoValue) continue;
    of.push_back(outputs[o]);
    seeds.push_back(grad(o));
  }
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (!wants(i)) continue;
    inputs.push_back(i);
    with_respect_to.push_back(input(i));
  }
  auto gradients = add_gradients_(first_node_, of, seeds, with_respect_to);
  if (!gradients.ok()) return Fail(gradients.status());
  for (size_t i = 0; i < inputs.size(); ++i) Set(inputs[i], (*gradients)[i]);
}

void GradBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

const Type& GradBuilder::type(ValueId v) const {
  static const Type kNone = UndeclaredType();
  return v == kNoValue ? kNone : graph_->value(v).type;
}

ValueId GradBuilder::Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs) {
  return AddNode("", op, std::move(inputs), std::move(attrs), 1)[0];
}

ValueId GradBuilder::AddMsrt(std::string_view op, std::vector<ValueId> inputs, AttrList attrs) {
  return AddNode("msrt", op, std::move(inputs), std::move(attrs), 1)[0];
}

std::vector<ValueId> GradBuilder::AddNode(std::string_view domain, std::string_view op,
                                          std::vector<ValueId> inputs, AttrList attrs,
                                          size_t outputs) {
  std::vector<ValueId> none(outputs, kNoValue);
  if (!ok()) return none;
  auto added = GraphBuilder(graph_, ops_)
                   .Add(domain, op, StrCat(node_.name, "/grad"), std::move(inputs),
                        std::move(attrs), outputs);
  if (added.ok()) return *std::move(added);
  Fail(added.status());
  return none;
}

ValueId GradBuilder::Scalar(double number, ValueId like) {
  if (!ok()) return kNoValue;
  auto constant = ScalarConstant(type(like).dtype, number);
  if (constant.ok()) return graph_->AddConstant(StrCat(number), *std::move(constant));
  Fail(constant.status());
  return kNoValue;
}

ValueId GradBuilder::Ints(std::vector<int64_t> numbers) {
  if (!ok()) return kNoValue;
  return graph_->AddConstant("ints", ConstTensor::Int64s(numbers));
}

ValueId GradBuilder::Constant(std::string_view name, ConstTensor data) {
  return ok() ? graph_->AddConstant(std::string(name), std::move(data)) : kNoValue;
}

ValueId GradBuilder::CastTo(ValueId a, ValueId like) {
  if (type(a).dtype == type(like).dtype) return a;
  return Add("Cast", {a}, {{"to", type(like).dtype}});
}

ValueId GradBuilder::ShapeOf(ValueId v) {
  const Type t = type(v);
  if (!t.concrete()) return Add("Shape", {v});
  return Ints({t.dims.begin(), t.dims.end()});
}

ValueId GradBuilder::Fill(double number, ValueId like) {
  return Add("Expand", {Scalar(number, like), ShapeOf(like)});
}

namespace {

// Whether the dims are equal whatever the symbols in them become.
bool HaveSameDims(const Type& a, const Type& b) {
  const auto is_named = [](int64_t dim) { return dim != kUnknownDim; };
  return a.rank_known && b.rank_known && a.dims == b.dims &&
         std::all_of(a.dims.begin(), a.dims.end(), is_named);
}

// The axes along which a tensor of type `to` broadcasts to `from`; nothing if that depends on dims
// that are not known.
std::optional<std::vector<int64_t>> BroadcastAxes(const Type& from, const Type& to) {
  if (!from.rank_known || !to.rank_known || from.rank() < to.rank()) return std::nullopt;
  const int extra = from.rank() - to.rank();
  std::vector<int64_t> axes;
  for (int d = 0; d < from.rank(); ++d) {
    const int64_t is = from.dims[d], wanted = d < extra ? 1 : to.dims[d - extra];
    if (d < extra || (wanted == 1 && is != 1)) axes.push_back(d);
    else if (!IsKnown(wanted) && (wanted != is || wanted == kUnknownDim)) return std::nullopt;
  }
  return axes;
}

}  // namespace

ValueId GradBuilder::ReshapeTo(ValueId v, ValueId like) {
  if (HaveSameDims(type(v), type(like))) return v;
  const Type t = type(like);
  if (!t.concrete()) return Add("Reshape", {v, ShapeOf(like)}, {{"allowzero", int64_t{1}}});
  return Add("Reshape", {v},
             {{"shape", std::vector<int64_t>(t.dims.begin(), t.dims.end())},
              {"allowzero", int64_t{1}}});
}

ValueId GradBuilder::ExpandTo(ValueId v, ValueId like) {
  if (HaveSameDims(type(v), type(like))) return v;
  return Add("Expand", {v, ShapeOf(like)});
}

ValueId GradBuilder::SumTo(ValueId v, ValueId like) {
  if (v == kNoValue || !ok()) return kNoValue;
  const Type from = type(v), to = type(like);
  const auto axes = BroadcastAxes(from, to);
  if (!axes) return AddMsrt("SumTo", {v, ShapeOf(like)});
  if (axes->empty()) return ReshapeTo(v, like);
  // Only leading axes: the result has the dims of `like`.
  const auto extra = static_cast<size_t>(from.rank() - to.rank());
  const bool leading = axes->size() == extra && axes->back() + 1 == static_cast<int64_t>(extra);
  const ValueId sum = SumOver(v, *axes, /*keep=*/!leading);
  return leading ? sum : ReshapeTo(sum, like);
}

ValueId GradBuilder::SumOver(ValueId v, std::vector<int64_t> axes, bool keep) {
  return Add("ReduceSum", {v}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keep}}});
}

Status GradZero(GradBuilder&) { return OkStatus(); }

}  // namespace msrt
