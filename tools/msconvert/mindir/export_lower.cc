#include "tools/msconvert/mindir/export_lower.h"

#include <algorithm>
#include <limits>

#include "core/base/half.h"

namespace msrt::mindir_export {
namespace {

// Larger constants are weights and become parameters, as in MindSpore; smaller ones stay literals,
// so that it can fold them.
constexpr size_t kLiteralBytes = 4096;
bool IsWeight(const ConstTensor& t) {
  return (IsFloat(t.dtype) && t.dims.elements() > 1) || t.bytes.size() > kLiteralBytes;
}

template <typename T>
ConstTensor Scalar(DType dtype, T value) {
  return ConstTensor::Of<T>(dtype, {}, std::span<const T>(&value, 1));
}

// Returns the nearest value that the type has.
template <typename T>
ConstTensor Whole(DType dtype, double value) {
  using Limits = std::numeric_limits<T>;
  if (value >= static_cast<double>(Limits::max())) return Scalar(dtype, Limits::max());
  if (!(value > static_cast<double>(Limits::min()))) return Scalar(dtype, Limits::min());
  return Scalar(dtype, static_cast<T>(value));
}

}  // namespace

GraphNames::GraphNames(const Graph& graph, FunctionWriter* out, FileWriter* file, bool is_main)
    : graph_(graph), out_(*out), file_(*file), is_main_(is_main), refs_(graph.value_count()) {}

Ref GraphNames::Load(const Value& value) {
  const ConstTensor& tensor = *value.constant;
  if (!is_main_ || !IsWeight(tensor)) return out_.Constant(tensor);
  const Ref parameter = file_.AddWeight(value.name, tensor);
  return out_.Prim("Load", {}, {parameter, out_.Monad()});
}

Ref GraphNames::Of(ValueId id) {
  Ref& ref = refs_[IndexOf(id)];
  const Value& value = graph_.value(id);
  if (ref.name.empty() && value.constant != nullptr) ref = Load(value);
  return ref;
}

std::optional<Ref> GraphNames::Known(ValueId id) {
  const Ref& ref = refs_[IndexOf(id)];
  if (!ref.name.empty()) return ref;
  const ConstTensor* constant = graph_.value(id).constant.get();
  if (constant == nullptr || constant->bytes.size() > kLiteralBytes) return std::nullopt;
  return out_.Constant(*constant);
}

std::vector<Ref> NodeLowering::AllInputs() {
  std::vector<Ref> inputs;
  for (size_t i = 0; i < node_.inputs.size(); ++i) {
    if (Has(i)) inputs.push_back(In(i));
  }
  return inputs;
}

void NodeLowering::SetOutput(size_t output, Ref value) {
  out().Describe(value, {&result(output), 1});
  names_.Set(node_.outputs[output], std::move(value));
}

Status NodeLowering::NeedRank(size_t input) const {
  return type(input).rank_known
             ? OkStatus()
             : Unsupported("the rank of input ", input, " is not known before the run");
}

Status NodeLowering::NeedShape(size_t input) const {
  return type(input).concrete()
             ? OkStatus()
             : Unsupported("the shape of input ", input, " is not known before the run");
}

std::optional<Ints> NodeLowering::KnownInts(std::string_view attr, size_t input) const {
  if (op().Has(attr)) return Ints(op().Ints(attr).begin(), op().Ints(attr).end());
  const ConstTensor* constant = op().constant(input);
  if (constant != nullptr) return IntValues(*constant);
  return std::nullopt;
}

Arg NodeLowering::IntsArg(std::string_view attr, size_t input) {
  if (auto known = KnownInts(attr, input)) return *std::move(known);
  return Prim("TensorToTuple", {}, {In(input)});
}

Ref NodeLowering::Number(double value, DType dtype) {
  return out().Constant(NumberTensor(dtype, value));
}
Ref NodeLowering::IntTensor(const Ints& values) {
  return out().Constant(ConstTensor::Int64s(values));
}

ConstTensor NumberTensor(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return Scalar(dtype, value);
    case DType::kF16:
      return Scalar(dtype, FloatToHalf(static_cast<float>(value)));
    case DType::kBF16:
      return Scalar(dtype, BFloat16(static_cast<float>(value)).bits);
    case DType::kI8:
      return Whole<int8_t>(dtype, value);
    case DType::kI16:
      return Whole<int16_t>(dtype, value);
    case DType::kI32:
      return Whole<int32_t>(dtype, value);
    case DType::kI64:
      return Whole<int64_t>(dtype, value);
    case DType::kU8:
      return Whole<uint8_t>(dtype, value);
    case DType::kU16:
      return Whole<uint16_t>(dtype, value);
    case DType::kU32:
      return Whole<uint32_t>(dtype, value);
    case DType::kU64:
      return Whole<uint64_t>(dtype, value);
    case DType::kBool:
      return Scalar(dtype, static_cast<uint8_t>(value != 0));
    default:
      return Scalar(DType::kF32, static_cast<float>(value));
  }
}

const Lowerer* FindLowerer(const Node& node) {
  const std::string name = OpName(node);
  for (const auto& family :
       {ElementwiseLowerers(), LinearLowerers(), PoolLowerers(), ShapeLowerers(), GatherLowerers(),
        NormLowerers(), ResizeLowerers(), AttentionLowerers(), RecurrentLowerers(), QuantLowerers(),
        LossLowerers(), DetectionLowerers()}) {
    const auto found = std::find_if(family.begin(), family.end(),
                                    [&](const Lowerer& row) { return row.op == name; });
    if (found != family.end()) return &*found;
  }
  return nullptr;
}

}  // namespace msrt::mindir_export
