#include "delegates/onednn/integer_operands.h"

#include <algorithm>
#include <cstring>

namespace msrt::onednn {
namespace {

constexpr IntegerInputs kSumInputs{.a = 0, .b = 1, .a_zero = 2, .b_zero = 3};
constexpr IntegerInputs kScaledInputs{.a = 0,
                                      .b = 3,
                                      .a_zero = 2,
                                      .b_zero = 5,
                                      .a_scale = 1,
                                      .b_scale = 4,
                                      .y_scale = 6,
                                      .y_zero = 7,
                                      .bias = 8,
                                      .residual = 9};

bool IsOne(const OpView& op, size_t input) { return op.input(input).elements() == 1; }

int32_t ByteAt(DType dtype, const void* data, size_t i) {
  return dtype == DType::kU8 ? int32_t{static_cast<const uint8_t*>(data)[i]}
                             : int32_t{static_cast<const int8_t*>(data)[i]};
}

int32_t ShiftOf(const OpView& op) {
  return op.input(IntegerInputsOf(op).b).dtype == DType::kU8 ? kByteShift : 0;
}

// The number that all elements of a constant zero point are; nullopt where it is no constant or
// they differ.
std::optional<int32_t> KnownZero(const OpView& op, size_t input) {
  if (!op.has_input(input)) return 0;
  const ConstTensor* zero = op.constant(input);
  if (zero == nullptr || zero->bytes.empty()) return std::nullopt;
  const int32_t first = ByteAt(zero->dtype, zero->bytes.data(), 0);
  for (size_t i = 1; i < zero->bytes.size(); ++i) {
    if (ByteAt(zero->dtype, zero->bytes.data(), i) != first) return std::nullopt;
  }
  return first;
}

// A zero point of A or Y that the library has to be told.
bool HasZero(const OpView& op, size_t input) {
  return op.has_input(input) && KnownZero(op, input) != 0;
}
bool HasWeightZero(const OpView& op) {
  const auto zero = WeightZero(op);
  return zero.ok() && *zero != 0;
}

// Two products of bytes fit 16 bits where no weight exceeds 64: then older instructions are exact
// too.
bool AreSmall(const ConstTensor& weights) {
  const auto values = weights.As<int8_t>();
  return weights.dtype == DType::kI8 &&
         std::all_of(values.begin(), values.end(), [](int8_t w) { return w >= -64 && w <= 64; });
}

const memory::desc& OneZero() {
  static const memory::desc desc({1}, memory::data_type::s32, memory::dims{1});
  return desc;
}

void AppendZero(int argument, size_t input, int32_t shift, Plan* plan,
                std::vector<Argument>* arguments) {
  const size_t offset = plan->Reserve(sizeof(int32_t));
  plan->AddLoop([=](const LoopArgs& args) {
    int32_t zero = -shift;
    if (input != IntegerInputs::kNone)
      zero += ByteAt(args.inputs[input].dtype, args.inputs[input].data, 0);
    std::memcpy(args.scratch + offset, &zero, sizeof(zero));
    return OkStatus();
  });
  arguments->push_back({DNNL_ARG_ATTR_ZERO_POINTS | argument, Place::Scratch(offset), OneZero()});
}

void AppendScale(int argument, const OpView& op, size_t input, std::vector<Argument>* arguments) {
  arguments->push_back({DNNL_ARG_ATTR_SCALES | argument, Place::Input(input),
                        DescribePlain({op.input(input).elements()})});
}

}  // namespace

const IntegerInputs& IntegerInputsOf(const OpView& op) {
  return op.domain() == "msrt" ? kScaledInputs : kSumInputs;
}

std::string IntegerRefusal(const NodeInfo& node) {
  const OpView& op = *node.op;
  const IntegerInputs& in = IntegerInputsOf(op);
  const ConstTensor* weights = op.constant(in.b);
  if (!SumsBytesExactly() &&
      !(op.input(in.a).dtype == DType::kU8 && weights != nullptr && AreSmall(*weights))) {
    return "without VNNI oneDNN's products of bytes saturate, unless u8 is multiplied by constant "
           "weights from -64 to 64";
  }
  dnnl::primitive_attr unused;
  // A mask that both kinds of product accept: only what it is asked for matters here.
  return SetScalesAndZeros(*node.typical, 1, &unused).message();
}

Result<std::optional<int32_t>> WeightZero(const OpView& op) {
  const size_t input = IntegerInputsOf(op).b_zero;
  const auto known = KnownZero(op, input);
  if (known) return std::optional(*known - ShiftOf(op));
  if (op.constant(input) != nullptr || !IsOne(op, input))
    return Unsupported("zero points that differ by column or channel");
  return std::optional<int32_t>();
}

Status SetScalesAndZeros(const OpView& op, int list_mask, dnnl::primitive_attr* attr) {
  const IntegerInputs& in = IntegerInputsOf(op);
  for (const size_t input : {in.a_zero, in.a_scale}) {
    if (op.has_input(input) && !IsOne(op, input))
      return Unsupported("scales or zero points that differ by row");
  }
  MSRT_RETURN_IF_ERROR(WeightZero(op).status());
  if (HasZero(op, in.a_zero)) attr->set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (HasWeightZero(op)) attr->set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
  if (HasZero(op, in.y_zero)) attr->set_zero_points_mask(DNNL_ARG_DST, 0);
  if (op.has_input(in.a_scale)) attr->set_scales_mask(DNNL_ARG_SRC, 0);
  if (op.has_input(in.b_scale)) {
    if (!IsOne(op, in.b_scale) && op.input(in.b_scale).rank() != 1)
      return Unsupported("scales of several axes");
    attr->set_scales_mask(DNNL_ARG_WEIGHTS, IsOne(op, in.b_scale) ? 0 : list_mask);
  }
  if (op.has_input(in.y_scale)) attr->set_scales_mask(DNNL_ARG_DST, 0);
  return OkStatus();
}

void AppendScalesAndZeros(const OpView& op, Plan* plan, std::vector<Argument>* arguments) {
  const IntegerInputs& in = IntegerInputsOf(op);
  if (HasZero(op, in.a_zero)) AppendZero(DNNL_ARG_SRC, in.a_zero, 0, plan, arguments);
  if (HasWeightZero(op)) {
    AppendZero(DNNL_ARG_WEIGHTS, op.has_input(in.b_zero) ? in.b_zero : IntegerInputs::kNone,
               ShiftOf(op), plan, arguments);
  }
  if (HasZero(op, in.y_zero)) AppendZero(DNNL_ARG_DST, in.y_zero, 0, plan, arguments);
  if (op.has_input(in.a_scale)) AppendScale(DNNL_ARG_SRC, op, in.a_scale, arguments);
  if (op.has_input(in.b_scale)) AppendScale(DNNL_ARG_WEIGHTS, op, in.b_scale, arguments);
  if (op.has_input(in.y_scale)) AppendScale(DNNL_ARG_DST, op, in.y_scale, arguments);
}

Place PlaceBytes(const OpView& op, size_t input, Plan* plan) {
  if (op.input(input).dtype == DType::kI8) return Place::Input(input);
  const auto bytes = static_cast<size_t>(op.input(input).elements());
  const size_t offset = plan->Reserve(bytes);
  plan->AddLoop([=](const LoopArgs& args) {
    constexpr int64_t kGrain = 1 << 16;
    return ParallelRanges(args.parallel, static_cast<int64_t>(bytes), kGrain,
                          [&](int64_t begin, int64_t end) {
                            ShiftBytes(args.inputs[input].As<uint8_t>() + begin,
                                       reinterpret_cast<int8_t*>(args.scratch + offset) + begin,
                                       static_cast<size_t>(end - begin));
                          });
  });
  return Place::Scratch(offset);
}

std::string PackedVariant(const OpView& op) {
  const IntegerInputs& in = IntegerInputsOf(op);
  return StrCat("for ", op.input(in.a).dtype, HasZero(op, in.a_zero) ? " with a zero point" : "");
}

}  // namespace msrt::onednn
