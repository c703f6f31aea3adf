// Functions of one element: arithmetic, transcendental functions, activations, tests, Cast, Clip
// and Identity.
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr DTypeSet kSignedNumberTypes = kFloatTypes | kSignedTypes;

constexpr ParamDef kFloatInput[] = {{.name = "X", .types = kFloatTypes}};
constexpr ParamDef kNumberInput[] = {{.name = "X", .types = kNumberTypes}};
constexpr ParamDef kSignedInput[] = {{.name = "X", .types = kSignedNumberTypes}};
constexpr ParamDef kIntInput[] = {{.name = "X", .types = kIntTypes}};
constexpr ParamDef kBoolInput[] = {{.name = "X", .types = kBoolType}};
constexpr ParamDef kSpecialFloatInput[] = {{.name = "X", .types = kFloatTypes | kF8Types}};
constexpr ParamDef kAnyInput[] = {{.name = "input", .types = kAllTypes}};
constexpr ParamDef kClipInputs[] = {
    {.name = "input", .types = kNumberTypes, .group = 1},
    {.name = "min", .types = kNumberTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "max", .types = kNumberTypes, .kind = ParamDef::kOptional, .group = 1},
};

// Defaults are those of ONNX, whose attributes have single precision: 0.01f is not 0.01.
constexpr AttrDef FloatAttr(std::string_view name, float value) {
  return {.name = name, .kind = AttrKind::kFloat, .default_float = value};
}
constexpr AttrDef FlagAttr(std::string_view name, int64_t value) {
  return {.name = name, .kind = AttrKind::kInt, .default_int = value, .min_int = 0, .max_int = 1};
}
constexpr std::string_view kGeluApproximations[] = {"none", "tanh"};

constexpr AttrDef kAlphaOneAttrs[] = {FloatAttr("alpha", 1)};  // Elu, Celu, Swish, ThresholdedRelu
constexpr AttrDef kLeakyReluAttrs[] = {FloatAttr("alpha", 0.01f)};
constexpr AttrDef kSeluAttrs[] = {FloatAttr("alpha", 1.67326319217681884765625f),
                                  FloatAttr("gamma", 1.05070102214813232421875f)};
constexpr AttrDef kHardSigmoidAttrs[] = {FloatAttr("alpha", 0.2f), FloatAttr("beta", 0.5f)};
constexpr AttrDef kShrinkAttrs[] = {FloatAttr("bias", 0), FloatAttr("lambd", 0.5f)};
constexpr AttrDef kIsInfAttrs[] = {FlagAttr("detect_negative", 1), FlagAttr("detect_positive", 1)};
constexpr AttrDef kGeluAttrs[] = {{.name = "approximate",
                                   .kind = AttrKind::kString,
                                   .default_string = "none",
                                   .choices = kGeluApproximations}};
constexpr AttrDef kCastAttrs[] = {{.name = "to", .kind = AttrKind::kDType, .required = true},
                                  FlagAttr("saturate", 1)};
constexpr AttrDef kClipAttrs[] = {{.name = "min", .kind = AttrKind::kFloat},
                                  {.name = "max", .kind = AttrKind::kFloat}};

// Output 0 has the type of input 0 with another element type.
Status InferAs(InferContext& c, DType dtype) {
  Type type = c.input(0);
  type.dtype = dtype;
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status InferTest(InferContext& c) { return InferAs(c, DType::kBool); }

Status InferCast(InferContext& c) {
  const DType to = c.op().Dtype("to");
  if (!IsDType(static_cast<uint32_t>(to))) return InvalidModel("to is not a known element type");
  return InferAs(c, to);
}

Status InferCelu(InferContext& c) {
  if (c.op().Float("alpha") == 0)
    return InvalidModel("alpha = 0, must not be zero because Celu divides by it");
  return InferSameAsFirst(c);
}

Status InferClip(InferContext& c) {
  for (size_t i = 1; i <= 2; ++i) {
    if (!c.has_input(i)) continue;
    const std::string_view name = kClipInputs[i].name;
    if (c.op().Has(name))
      return InvalidModel(name, " is given twice, as an attribute and as input ", i,
                          "; give one of them");
    const Type& bound = c.input(i);
    const bool scalar = !bound.rank_known || bound.rank() == 0 ||
                        (bound.rank() == 1 && (bound.dims[0] == 1 || !IsKnown(bound.dims[0])));
    if (!scalar)
      return InvalidModel("input ", i, " '", name, "' has shape ", bound.dims,
                          ", must be a scalar");
  }
  return InferSameAsFirst(c);
}

constexpr OpDef Unary(std::string_view name, std::span<const ParamDef> inputs, GradFn grad,
                      std::span<const AttrDef> attrs = {}, InferFn infer = InferSameAsFirst) {
  return {.name = name,
          .attrs = attrs,
          .inputs = inputs,
          .infer = infer,
          .grad = grad,
          .space = &kElementwiseSpace,
          .traits = kElementwise};
}
// Functions of real numbers.
constexpr OpDef Function(std::string_view name, GradFn grad, std::span<const AttrDef> attrs = {}) {
  return Unary(name, kFloatInput, grad, attrs);
}

constexpr OpDef kUnaryOps[] = {
    Unary("Abs", kNumberInput, GradAbs),
    Unary("Neg", kSignedInput, GradNeg),
    Unary("Sign", kNumberInput, GradZero),
    Function("Ceil", GradZero),
    Function("Floor", GradZero),
    Function("Round", GradZero),
    Function("Sqrt", GradSqrt),
    Function("Reciprocal", GradReciprocal),
    Function("Exp", GradExp),
    Function("Log", GradLog),
    Function("Erf", GradErf),
    Function("Sin", GradSin),
    Function("Cos", GradCos),
    Function("Tan", GradTan),
    Function("Asin", GradAsin),
    Function("Acos", GradAcos),
    Function("Atan", GradAtan),
    Function("Sinh", GradSinh),
    Function("Cosh", GradCosh),
    Function("Tanh", GradTanh),
    Function("Asinh", GradAsinh),
    Function("Acosh", GradAcosh),
    Function("Atanh", GradAtanh),
    Function("Sigmoid", GradSigmoid),
    Unary("Relu", kSignedInput, GradRelu),
    Function("LeakyRelu", GradLeakyRelu, kLeakyReluAttrs),
    Function("Elu", GradElu, kAlphaOneAttrs),
    Function("Selu", GradSelu, kSeluAttrs),
    Unary("Celu", kFloatInput, GradCelu, kAlphaOneAttrs, InferCelu),
    Function("ThresholdedRelu", GradThresholdedRelu, kAlphaOneAttrs),
    Function("HardSigmoid", GradHardSigmoid, kHardSigmoidAttrs),
    Function("HardSwish", GradHardSwish),
    Function("Softplus", GradSoftplus),
    Function("Softsign", GradSoftsign),
    Function("Gelu", GradGelu, kGeluAttrs),
    Function("Mish", GradMish),
    {.name = "Swish",
     .version = 24,
     .attrs = kAlphaOneAttrs,
     .inputs = kFloatInput,
     .infer = InferSameAsFirst,
     .grad = GradSwish,
     .space = &kElementwiseSpace,
     .traits = kElementwise},
    Unary("Shrink", kNumberInput, GradShrink, kShrinkAttrs),
    Unary("Clip", kClipInputs, GradClip, kClipAttrs, InferClip),
    Unary("Cast", kAnyInput, GradCast, kCastAttrs, InferCast),
    Unary("Not", kBoolInput, nullptr),
    Unary("BitwiseNot", kIntInput, nullptr),
    Unary("IsNaN", kSpecialFloatInput, nullptr, {}, InferTest),
    Unary("IsInf", kSpecialFloatInput, nullptr, kIsInfAttrs, InferTest),
    {.name = "Identity",
     .inputs = kAnyInput,
     .infer = InferSameAsFirst,
     .grad = GradIdentity,
     .space = &kElementwiseSpace,
     .traits = kElementwise | kView},
    // The identity, through which no gradient flows.
    {.name = "StopGradient",
     .domain = "msrt",
     .version = 1,
     .inputs = kAnyInput,
     .infer = InferSameAsFirst,
     .grad = GradZero,
     .space = &kElementwiseSpace,
     .traits = kElementwise | kView},
};

}  // namespace

std::span<const OpDef> UnaryOps() { return kUnaryOps; }

}  // namespace msrt
