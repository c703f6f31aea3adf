// Functions of two or more elements, with NumPy broadcasting: arithmetic, bits, comparisons, logic,
// Where and PRelu.
#include <array>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr std::array<ParamDef, 2> PairOf(DTypeSet types) {
  return {ParamDef{.name = "A", .types = types, .group = 1},
          ParamDef{.name = "B", .types = types, .group = 1}};
}
constexpr auto kNumberPair = PairOf(kNumberTypes), kIntPair = PairOf(kIntTypes),
               kBoolPair = PairOf(kBoolType);
constexpr auto kComparablePair = PairOf(kComputeTypes);
constexpr ParamDef kNumbers[] = {
    {.name = "data", .types = kNumberTypes, .kind = ParamDef::kVariadic, .group = 1}};
constexpr ParamDef kFloats[] = {
    {.name = "data", .types = kFloatTypes, .kind = ParamDef::kVariadic, .group = 1}};

constexpr DTypeSet kPowBaseTypes = kFloatTypes | kIndexTypes;
constexpr DTypeSet kPReluTypes =
    kFloatTypes | DTypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};
constexpr ParamDef kPowInputs[] = {{.name = "X", .types = kPowBaseTypes},
                                   {.name = "Y", .types = kNumberTypes}};
constexpr ParamDef kPReluInputs[] = {{.name = "X", .types = kPReluTypes, .group = 1},
                                     {.name = "slope", .types = kPReluTypes, .group = 1}};
constexpr ParamDef kWhereInputs[] = {
    {.name = "condition", .types = kBoolType},
    {.name = "X", .types = kComputeTypes, .group = 1},
    {.name = "Y", .types = kComputeTypes, .group = 1},
};

constexpr std::string_view kDirections[] = {"LEFT", "RIGHT"};
constexpr AttrDef kBitShiftAttrs[] = {
    {.name = "direction", .kind = AttrKind::kString, .required = true, .choices = kDirections}};
constexpr AttrDef kModAttrs[] = {{.name = "fmod", .min_int = 0, .max_int = 1}};

Status InferAsFirst(InferContext& c) { return InferBroadcast(c, c.dtype(0)); }
Status InferComparison(InferContext& c) { return InferBroadcast(c, DType::kBool); }
Status InferWhere(InferContext& c) { return InferBroadcast(c, c.dtype(1)); }

// The slope broadcasts to X, but not X to the slope.
Status InferPRelu(InferContext& c) {
  if (c.input(0).rank_known && c.input(1).rank_known)
    MSRT_RETURN_IF_ERROR(CheckBroadcastsTo(c.dims(1), c.dims(0), "slope"));
  return InferSameAsFirst(c);
}

constexpr OpDef Broadcasting(std::string_view name, std::span<const ParamDef> inputs, GradFn grad,
                             InferFn infer = InferAsFirst, std::span<const AttrDef> attrs = {}) {
  return {.name = name,
          .attrs = attrs,
          .inputs = inputs,
          .infer = infer,
          .grad = grad,
          .space = &kElementwiseSpace,
          .traits = kElementwise};
}

constexpr OpDef kBinaryOps[] = {
    Broadcasting("Add", kNumberPair, GradAdd),
    Broadcasting("Sub", kNumberPair, GradSub),
    Broadcasting("Mul", kNumberPair, GradMul),
    Broadcasting("Div", kNumberPair, GradDiv),
    Broadcasting("Mod", kNumberPair, GradMod, InferAsFirst, kModAttrs),
    Broadcasting("Pow", kPowInputs, GradPow),
    Broadcasting("Max", kNumbers, GradMax),
    Broadcasting("Min", kNumbers, GradMax),
    Broadcasting("Sum", kFloats, GradSum),
    Broadcasting("Mean", kFloats, GradMean),
    Broadcasting("PRelu", kPReluInputs, GradPRelu, InferPRelu),
    Broadcasting("BitShift", kIntPair, nullptr, InferAsFirst, kBitShiftAttrs),
    Broadcasting("BitwiseAnd", kIntPair, nullptr),
    Broadcasting("BitwiseOr", kIntPair, nullptr),
    Broadcasting("BitwiseXor", kIntPair, nullptr),
    Broadcasting("And", kBoolPair, nullptr),
    Broadcasting("Or", kBoolPair, nullptr),
    Broadcasting("Xor", kBoolPair, nullptr),
    Broadcasting("Equal", kComparablePair, nullptr, InferComparison),
    Broadcasting("Greater", kNumberPair, nullptr, InferComparison),
    Broadcasting("GreaterOrEqual", kNumberPair, nullptr, InferComparison),
    Broadcasting("Less", kNumberPair, nullptr, InferComparison),
    Broadcasting("LessOrEqual", kNumberPair, nullptr, InferComparison),
    Broadcasting("Where", kWhereInputs, GradWhere, InferWhere),
};

}  // namespace

std::span<const OpDef> BinaryOps() { return kBinaryOps; }

}  // namespace msrt
