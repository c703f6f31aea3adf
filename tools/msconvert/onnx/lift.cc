#include "tools/msconvert/onnx/lift.h"

#include <algorithm>
#include <cmath>

#include "core/base/half.h"
#include "ops/registry.h"
#include "tools/msconvert/onnx/proto_import.h"

namespace msrt::onnx_import {
namespace {

template <typename T>
const T* Get(const AttrList& attrs, std::string_view name) {
  const AttrValue* v = attrs.Find(name);
  return v == nullptr ? nullptr : std::get_if<T>(v);
}

bool IsFloatPair(DType t) { return t == DType::kF32 || t == DType::kF64; }

// Returns element i of a tensor whose type is one of those two.
double FloatAt(const ConstTensor& t, size_t i) {
  return t.dtype == DType::kF32 ? t.As<float>()[i] : t.As<double>()[i];
}

std::vector<double> FloatsOf(const ConstTensor& t) {
  std::vector<double> values(static_cast<size_t>(t.dims.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = FloatAt(t, i);
  return values;
}

}  // namespace

NodeLift::NodeLift(Graph* graph, std::string domain, std::string op, int64_t opset,
                   std::string name, std::vector<ValueId> inputs, AttrList attrs,
                   std::vector<std::string> output_names)
    : graph_(graph),
      domain_(std::move(domain)),
      op_(std::move(op)),
      name_(std::move(name)),
      opset_(opset),
      inputs_(std::move(inputs)),
      attrs_(std::move(attrs)),
      output_names_(std::move(output_names)),
      outputs_(output_names_.size(), kNoValue) {}

const Type& NodeLift::type_of(ValueId v) const {
  static const Type undeclared = UndeclaredType();
  return v == kNoValue ? undeclared : graph_->value(v).type;
}

Status NodeLift::RequireInputs(size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    if (!has_input(i)) return InvalidModel("input ", i, " is missing");
  }
  return OkStatus();
}

void NodeLift::SetInput(size_t i, ValueId value) {
  if (inputs_.size() <= i) inputs_.resize(i + 1, kNoValue);
  inputs_[i] = value;
}

int64_t NodeLift::Int(std::string_view attr, int64_t fallback) const {
  const auto* v = Get<int64_t>(attrs_, attr);
  return v != nullptr ? *v : fallback;
}

double NodeLift::Float(std::string_view attr, double fallback) const {
  const auto* v = Get<double>(attrs_, attr);
  return v != nullptr ? *v : fallback;
}

std::string NodeLift::String(std::string_view attr, std::string fallback) const {
  const auto* v = Get<std::string>(attrs_, attr);
  return v != nullptr ? *v : fallback;
}

std::vector<int64_t> NodeLift::Ints(std::string_view attr) const {
  const auto* v = Get<std::vector<int64_t>>(attrs_, attr);
  return v != nullptr ? *v : std::vector<int64_t>();
}

std::vector<double> NodeLift::Floats(std::string_view attr) const {
  const auto* v = Get<std::vector<double>>(attrs_, attr);
  return v != nullptr ? *v : std::vector<double>();
}

std::string NodeLift::NameFor(std::string_view op) {
  return added_++ == 0 ? name_ : StrCat(name_, "/", op, "_", added_ - 1);
}

Result<std::vector<ValueId>> NodeLift::AddMany(std::string_view domain, std::string_view op,
                                               std::vector<ValueId> inputs, AttrList attrs,
                                               size_t output_count, std::vector<Type> declared) {
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  return GraphBuilder(graph_).Add(domain, op, NameFor(op), std::move(inputs), std::move(attrs),
                                  output_count, std::move(declared));
}

Result<ValueId> NodeLift::Add(std::string_view op, std::vector<ValueId> inputs, AttrList attrs) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        AddMany("", op, std::move(inputs), std::move(attrs), 1));
  return outputs[0];
}

ValueId NodeLift::Constant(ConstTensor data) {
  return graph_->AddConstant(StrCat(name_, "/constant_", graph_->value_count()), std::move(data));
}

ValueId NodeLift::Scalar(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return Constant(ConstTensor::Of<double>(dtype, {}, std::span<const double>(&value, 1)));
    case DType::kF16: {
      const uint16_t bits = FloatToHalf(static_cast<float>(value));
      return Constant(ConstTensor::Of<uint16_t>(dtype, {}, std::span<const uint16_t>(&bits, 1)));
    }
    case DType::kBF16: {
      const uint16_t bits = BFloat16(static_cast<float>(value)).bits;
      return Constant(ConstTensor::Of<uint16_t>(dtype, {}, std::span<const uint16_t>(&bits, 1)));
    }
    case DType::kF32: {
      const auto v = static_cast<float>(value);
      return Constant(ConstTensor::Of<float>(dtype, {}, std::span<const float>(&v, 1)));
    }
    default:
      break;
  }
  // Integers and truth values: the low bytes, least significant first.
  constexpr double kMax = 9.2e18;
  const auto v = std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -kMax, kMax));
  return Constant(
      ConstTensor::Copy(dtype, {}, std::as_bytes(std::span(&v, 1)).first(BytesOf(dtype, 1))));
}

void NodeLift::SetOutput(size_t i, ValueId value) {
  if (i < outputs_.size()) outputs_[i] = value;
}

Status NodeLift::PassAs(std::string_view op, std::string_view domain) {
  const OpDef* def = FindOp(domain, op);
  if (def == nullptr) return Unsupported("the op is not known");
  MSRT_RETURN_IF_ERROR(Fit(*def));
  size_t count = output_names_.size();
  while (count > static_cast<size_t>(std::max(def->min_outputs, 1)) &&
         output_names_[count - 1].empty())
    --count;
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        AddMany(domain, op, inputs_, attrs_, count));
  for (size_t i = 0; i < outputs.size(); ++i) SetOutput(i, outputs[i]);
  return OkStatus();
}

Status NodeLift::Fit(const OpDef& def) {
  AttrList fitted;
  for (const Attr& attr : attrs_) {
    const auto known = std::find_if(def.attrs.begin(), def.attrs.end(), [&](const AttrDef& d) {
      return d.name == attr.name && !d.local;
    });
    if (known == def.attrs.end()) {
      return Unsupported("attribute '", attr.name, "' = ", attr.value, " is not supported");
    }
    const auto* number = std::get_if<int64_t>(&attr.value);
    if (known->kind == AttrKind::kDType && number != nullptr) {
      if (*number == 0) continue;  // ONNX's "undefined": as if it were absent
      auto dtype = DTypeOf(*number);
      if (!dtype.ok())
        return std::move(dtype).status().Within(StrCat("attribute '", attr.name, "'"));
      fitted.Set(attr.name, *dtype);
    } else {
      fitted.Set(attr.name, attr.value);
    }
  }
  attrs_ = std::move(fitted);
  return InputsToAttrs(def);
}

Status NodeLift::InputsToAttrs(const OpDef& def) {
  for (size_t i = 0; i < inputs_.size() && i < def.inputs.size(); ++i) {
    const ConstTensor* value = constant(i);
    if (value == nullptr || attrs_.Find(def.inputs[i].name) != nullptr) continue;
    const auto attr = std::find_if(def.attrs.begin(), def.attrs.end(),
                                   [&](const AttrDef& d) { return d.name == def.inputs[i].name; });
    if (attr == def.attrs.end()) continue;
    const bool ints = kIndexTypes.Has(value->dtype), one = value->dims.elements() == 1;
    if (attr->kind == AttrKind::kInts && ints && value->dims.elements() <= attr->max_count)
      attrs_.Set(attr->name, IntValues(*value));
    else if (attr->kind == AttrKind::kInt && ints && one)
      attrs_.Set(attr->name, IntValues(*value)[0]);
    else if (attr->kind == AttrKind::kFloat && IsFloatPair(value->dtype) && one)
      attrs_.Set(attr->name, FloatAt(*value, 0));
    else if (attr->kind == AttrKind::kFloats && IsFloatPair(value->dtype) &&
             value->dims.elements() <= attr->max_count)
      attrs_.Set(attr->name, FloatsOf(*value));
    else continue;
    inputs_[i] = kNoValue;
  }
  return OkStatus();
}

LiftFn FindLift(std::string_view domain, std::string_view op) {
  static constexpr std::span<const LiftRule> (*kFamilies[])() = {ElementwiseLifts,
                                                                 TensorLifts,
                                                                 NormalizationLifts,
                                                                 ResizeLifts,
                                                                 ContribLifts,
                                                                 ContribAttentionLifts,
                                                                 ContribGroupQueryLifts,
                                                                 ContribQuantLifts,
                                                                 RecurrentLifts,
                                                                 VisionLifts,
                                                                 MlLifts,
                                                                 TreeLifts,
                                                                 LegacyLifts};
  for (const auto family : kFamilies) {
    for (const LiftRule& rule : family()) {
      if (rule.op == op && rule.domain == domain) return rule.lift;
    }
  }
  return nullptr;
}

}  // namespace msrt::onnx_import
