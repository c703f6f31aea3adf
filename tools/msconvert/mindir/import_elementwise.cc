// Elementwise ops: arithmetic with MindSpore's promotion of types, comparisons, logic, functions,
// activations.
#include <array>

#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

// Orders bool before integers before floating point; within a kind, by width.
int PromotionRank(DType t) {
  if (t == DType::kBool) return 0;
  return (IsFloat(t) ? 1000 : 100) + BitsOf(t) * 2 +
         (kSignedTypes.Has(t) || t == DType::kF16 ? 1 : 0);
}

// The type of a tensor wins over that of a number, unless the number's kind is higher.
Result<DType> Promoted(PrimitiveCall& call, const Item& a, const Item& b, ValueId va, ValueId vb) {
  const DType ta = call.type(va).dtype, tb = call.type(vb).dtype;
  if (ta == tb) return ta;
  const auto kind = [](DType t) { return t == DType::kBool ? 0 : IsFloat(t) ? 2 : 1; };
  const bool number_a = a.is(ItemKind::kNumber), number_b = b.is(ItemKind::kNumber);
  if (number_a != number_b) {
    const DType tensor = number_a ? tb : ta, number = number_a ? ta : tb;
    if (kind(tensor) >= kind(number)) return tensor;
    return kind(number) == 2 ? DType::kF32 : number;
  }
  if (IsFloat(ta) && IsFloat(tb) && BitsOf(ta) == 16 && BitsOf(tb) == 16) return DType::kF32;
  if (kind(ta) == 1 && kind(tb) == 1 &&
      kSignedTypes.Has(ta) != kSignedTypes.Has(tb)) {  // one that holds both
    const int bits = std::max(BitsOf(kSignedTypes.Has(ta) ? ta : tb),
                              2 * BitsOf(kSignedTypes.Has(ta) ? tb : ta));
    return bits <= 8    ? DType::kI8
           : bits == 16 ? DType::kI16
           : bits == 32 ? DType::kI32
                        : DType::kI64;
  }
  return PromotionRank(ta) > PromotionRank(tb) ? ta : tb;
}

struct Pair {
  ValueId a, b;
  DType dtype;
};

// Returns both operands in one type: the declared type of the result if the op computes in it, else
// the promoted type.
Result<Pair> Operands(PrimitiveCall& call, bool result_type) {
  Pair pair;
  MSRT_ASSIGN_OR_RETURN(const Item first, call.Get("input"));
  MSRT_ASSIGN_OR_RETURN(const Item second, call.Get("other"));
  MSRT_ASSIGN_OR_RETURN(pair.a, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(pair.b, call.Tensor("other"));
  if (result_type && call.declared().kind == ItemKind::kTensor)
    pair.dtype = call.declared().type.dtype;
  else {
    MSRT_ASSIGN_OR_RETURN(pair.dtype, Promoted(call, first, second, pair.a, pair.b));
  }
  MSRT_ASSIGN_OR_RETURN(pair.a, call.Cast(pair.a, pair.dtype));
  MSRT_ASSIGN_OR_RETURN(pair.b, call.Cast(pair.b, pair.dtype));
  return pair;
}

Status Arithmetic(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  const bool truth = p.dtype == DType::kBool;
  const std::string_view op = truth && call.target() == "Mul"   ? "And"
                              : truth && call.target() == "Add" ? "Or"
                                                                : call.target();
  return call.SetResult(call.Add(op, {p.a, p.b}));
}

// input + alpha * other.
Status Scaled(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(Pair p, Operands(call, true));
  MSRT_ASSIGN_OR_RETURN(const double alpha, call.Float("alpha", 1));
  if (alpha != 1) {
    MSRT_ASSIGN_OR_RETURN(p.b, call.Add("Mul", {p.b, call.Number(p.dtype, alpha)}));
  }
  return call.SetResult(call.Add(call.target(), {p.a, p.b}));
}

Status Comparison(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, false));
  if (call.target() != "NotEqual") return call.SetResult(call.Add(call.target(), {p.a, p.b}));
  MSRT_ASSIGN_OR_RETURN(const ValueId same, call.Add("Equal", {p.a, p.b}));
  return call.SetResult(call.Add("Not", {same}));
}

Status Logical(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId a, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(a, call.Cast(a, DType::kBool));
  if (call.target() == "Not") return call.SetResult(call.Add("Not", {a}));
  MSRT_ASSIGN_OR_RETURN(ValueId b, call.Tensor("other"));
  MSRT_ASSIGN_OR_RETURN(b, call.Cast(b, DType::kBool));
  return call.SetResult(call.Add(call.target(), {a, b}));
}

// Rounded towards minus infinity, of floating point and of integers.
Result<ValueId> FlooredQuotient(PrimitiveCall& call, const Pair& p) {
  if (IsFloat(p.dtype)) {
    MSRT_ASSIGN_OR_RETURN(const ValueId quotient, call.Add("Div", {p.a, p.b}));
    return call.Add("Floor", {quotient});
  }
  MSRT_ASSIGN_OR_RETURN(const ValueId rest, call.Add("Mod", {p.a, p.b}));
  MSRT_ASSIGN_OR_RETURN(const ValueId multiple, call.Add("Sub", {p.a, rest}));
  return call.Add("Div", {multiple, p.b});
}

Status FloorDiv(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  return call.SetResult(FlooredQuotient(call, p));
}

Status FloorMod(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  if (!IsFloat(p.dtype)) return call.SetResult(call.Add("Mod", {p.a, p.b}));
  MSRT_ASSIGN_OR_RETURN(const ValueId floored, FlooredQuotient(call, p));
  MSRT_ASSIGN_OR_RETURN(const ValueId multiple, call.Add("Mul", {floored, p.b}));
  return call.SetResult(call.Add("Sub", {p.a, multiple}));
}

// Rounded towards zero. Ours does that to integers anyway.
Status TruncateDiv(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  MSRT_ASSIGN_OR_RETURN(const ValueId quotient, call.Add("Div", {p.a, p.b}));
  if (!IsFloat(p.dtype)) return call.SetResult(Result<ValueId>(quotient));
  MSRT_ASSIGN_OR_RETURN(const ValueId size, call.Add("Abs", {quotient}));
  MSRT_ASSIGN_OR_RETURN(const ValueId whole, call.Add("Floor", {size}));
  MSRT_ASSIGN_OR_RETURN(const ValueId sign, call.Add("Sign", {quotient}));
  return call.SetResult(call.Add("Mul", {whole, sign}));
}

Status TruncateMod(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  return call.SetResult(call.Add("Mod", {p.a, p.b}, {{"fmod", int64_t{1}}}));
}

Status Shift(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  return call.SetResult(
      call.Add("BitShift", {p.a, p.b}, {{"direction", std::string(call.target())}}));
}

// A function of one tensor, in the type of the result, which is floating point for integers too.
Status Function(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  const bool widen = !IsFloat(call.type(x).dtype) && call.declared().kind == ItemKind::kTensor &&
                     IsFloat(call.declared().type.dtype);
  if (widen) {
    MSRT_ASSIGN_OR_RETURN(x, call.Cast(x, call.declared().type.dtype));
  }
  return call.SetResult(call.Add(call.target(), {x}));
}

Status Same(PrimitiveCall& call) { return call.SetResult(call.Tensor("input")); }

Status Round(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const int64_t decimals, call.Int("decimals", 0));
  if (decimals != 0) return Unsupported("argument 'decimals' = ", decimals, " is not supported");
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return call.SetResult(call.Add("Round", {x}));
}

Status Square(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return call.SetResult(call.Add("Mul", {x, x}));
}

Status Rsqrt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId root, call.Add("Sqrt", {x}));
  return call.SetResult(call.Add("Reciprocal", {root}));
}

Status Log1p(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId more,
                        call.Add("Add", {x, call.Number(call.type(x).dtype, 1)}));
  return call.SetResult(call.Add("Log", {more}));
}

Status Expm1(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId power, call.Add("Exp", {x}));
  return call.SetResult(call.Add("Sub", {power, call.Number(call.type(x).dtype, 1)}));
}

Status Erfc(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId erf, call.Add("Erf", {x}));
  return call.SetResult(call.Add("Sub", {call.Number(call.type(x).dtype, 1), erf}));
}

Status Cast(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  DType to;
  if (call.Has("dtype")) {
    MSRT_ASSIGN_OR_RETURN(to, call.ElementType("dtype"));
  } else {
    MSRT_ASSIGN_OR_RETURN(to, call.ElementType("dst_type"));
  }
  return call.SetResult(call.Cast(x, to));
}

// Always the tanh form.
Status Gelu(PrimitiveCall& call) {
  constexpr std::string_view kForms[] = {"NONE", "TANH"};
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const std::string form, call.Choice("approximate", kForms, call.target()));
  return call.SetResult(
      call.Add("Gelu", {x}, {{"approximate", std::string(form == "TANH" ? "tanh" : "none")}}));
}

// Approximates Gelu by a sigmoid.
Status FastGelu(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return call.SetResult(call.Add("Swish", {x}, {{"alpha", 1.702}}));
}

Status Alpha(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const double alpha,
                        call.Float("alpha", call.target() == "LeakyRelu" ? 0.2 : 1.0));
  return call.SetResult(call.Add(call.target(), {x}, {{"alpha", alpha}}));
}

Status LeakyReluExt(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const double slope, call.Float("negative_slope", 0.01));
  return call.SetResult(call.Add("LeakyRelu", {x}, {{"alpha", slope}}));
}

// x * relu6(x + 3) / 6 and relu6(x + 3) / 6.
Status HardSigmoid(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  if (call.target() == "HardSwish") return call.SetResult(call.Add("HardSwish", {x}));
  return call.SetResult(call.Add("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

Status Relu6(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  return call.SetResult(call.Add("Clip", {x}, {{"min", 0.0}, {"max", 6.0}}));
}

// A slope for each channel, the second dim.
Status Prelu(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(ValueId slope, call.Tensor("weight"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  if (rank > 2) {
    std::vector<int64_t> dims(static_cast<size_t>(rank) - 1, 1);
    dims[0] = -1;
    MSRT_ASSIGN_OR_RETURN(slope, call.Add("Reshape", {slope}, {{"shape", dims}}));
  }
  return call.SetResult(call.Add("PRelu", {x, slope}));
}

// A bound may be a number or a tensor; either may be missing.
Status Clamp(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId x, call.Tensor("input"));
  const DType dtype =
      call.declared().kind == ItemKind::kTensor ? call.declared().type.dtype : call.type(x).dtype;
  MSRT_ASSIGN_OR_RETURN(x, call.Cast(x, dtype));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kBounds{
      {{"min", "Max"}, {"max", "Min"}}};
  for (const auto& [argument, op] : kBounds) {
    MSRT_ASSIGN_OR_RETURN(ValueId bound, call.TensorOrNone(argument));
    if (bound == kNoValue) continue;
    MSRT_ASSIGN_OR_RETURN(bound, call.Cast(bound, dtype));
    MSRT_ASSIGN_OR_RETURN(x, call.Add(op, {x, bound}));
  }
  call.SetResult(x);
  return OkStatus();
}

Status Select(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(ValueId condition, call.Tensor("condition"));
  MSRT_ASSIGN_OR_RETURN(condition, call.Cast(condition, DType::kBool));
  MSRT_ASSIGN_OR_RETURN(const Pair p, Operands(call, true));
  return call.SetResult(call.Add("Where", {condition, p.a, p.b}));
}

Status MaskedFill(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const ValueId mask, call.Tensor("mask"));
  MSRT_ASSIGN_OR_RETURN(ValueId value, call.Tensor("value"));
  MSRT_ASSIGN_OR_RETURN(value, call.Cast(value, call.type(x).dtype));
  return call.SetResult(call.Add("Where", {mask, value, x}));
}

Status Softplus(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const double beta, call.Float("beta", 1));
  if (beta != 1) return Unsupported("argument 'beta' = ", beta, " is not supported");
  return call.SetResult(call.Add("Softplus", {x}));
}

// In inference nothing is dropped, and the mask keeps everything.
Status Dropout(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const double keep, call.Float("keep_prob", 1));
  if (keep != 1 && call.for_training()) {
    MSRT_ASSIGN_OR_RETURN(
        const std::vector<ValueId> dropped,
        call.AddMany("", "Dropout", {x}, {{"training", int64_t{0}}, {"ratio", 1 - keep}}, 2));
    MSRT_ASSIGN_OR_RETURN(const ValueId kept,
                          call.Add("Cast", {dropped[1]}, {{"to", call.type(x).dtype}}));
    return call.SetTupleResult({dropped[0], kept});
  }
  if (keep != 1) return Unsupported("it drops values, as for training");
  MSRT_ASSIGN_OR_RETURN(const ValueId zeros, call.Add("Sub", {x, x}));
  MSRT_ASSIGN_OR_RETURN(const ValueId mask,
                        call.Add("Add", {zeros, call.Number(call.type(x).dtype, 1)}));
  return call.SetTupleResult({x, mask});
}

constexpr std::string_view kPair = "input other", kOne = "input";

constexpr Rule kElementwiseRules[] = {
    {"Add", kPair, Arithmetic, "Add"},
    {"Sub", kPair, Arithmetic, "Sub"},
    {"Mul", kPair, Arithmetic, "Mul"},
    {"Muls", kPair, Arithmetic, "Mul"},
    {"Div", kPair, Arithmetic, "Div"},
    {"Divs", kPair, Arithmetic, "Div"},
    {"RealDiv", kPair, Arithmetic, "Div"},
    {"Maximum", kPair, Arithmetic, "Max"},
    {"Minimum", kPair, Arithmetic, "Min"},
    {"Pow", kPair, Arithmetic, "Pow"},
    {"PowTensorScalar", kPair, Arithmetic, "Pow"},
    {"PowScalarTensor", kPair, Arithmetic, "Pow"},
    {"ScalarAdd", kPair, Arithmetic, "Add"},
    {"ScalarSub", kPair, Arithmetic, "Sub"},
    {"ScalarMul", kPair, Arithmetic, "Mul"},
    {"ScalarDiv", kPair, Arithmetic, "Div"},
    {"AddExt", "input other alpha", Scaled, "Add"},
    {"AddScalar", "input other alpha", Scaled, "Add"},
    {"SubExt", "input other alpha", Scaled, "Sub"},
    {"SubScalar", "input other alpha", Scaled, "Sub"},
    {"FloorDiv", kPair, FloorDiv},
    {"FloorDivScalar", kPair, FloorDiv},
    {"ScalarFloorDiv", kPair, FloorDiv},
    {"FloorMod", kPair, FloorMod},
    {"ScalarMod", kPair, FloorMod},
    {"RemainderTensorTensor", kPair, FloorMod},
    {"RemainderTensorScalar", kPair, FloorMod},
    {"RemainderScalarTensor", kPair, FloorMod},
    {"TruncateDiv", kPair, TruncateDiv},
    {"TruncateMod", kPair, TruncateMod},
    {"BitwiseAnd", kPair, Arithmetic, "BitwiseAnd"},
    {"BitwiseOr", kPair, Arithmetic, "BitwiseOr"},
    {"BitwiseXor", kPair, Arithmetic, "BitwiseXor"},
    {"LeftShift", kPair, Shift, "LEFT"},
    {"RightShift", kPair, Shift, "RIGHT"},
    {"Equal", kPair, Comparison, "Equal"},
    {"NotEqual", kPair, Comparison, "NotEqual"},
    {"Greater", kPair, Comparison, "Greater"},
    {"GreaterEqual", kPair, Comparison, "GreaterOrEqual"},
    {"Less", kPair, Comparison, "Less"},
    {"LessEqual", kPair, Comparison, "LessOrEqual"},
    {"EqScalar", kPair, Comparison, "Equal"},
    {"NeScalar", kPair, Comparison, "NotEqual"},
    {"GreaterScalar", kPair, Comparison, "Greater"},
    {"GreaterEqualScalar", kPair, Comparison, "GreaterOrEqual"},
    {"LessScalar", kPair, Comparison, "Less"},
    {"LessEqualScalar", kPair, Comparison, "LessOrEqual"},
    {"ScalarEq", kPair, Comparison, "Equal"},
    {"ScalarLt", kPair, Comparison, "Less"},
    {"ScalarLe", kPair, Comparison, "LessOrEqual"},
    {"ScalarGt", kPair, Comparison, "Greater"},
    {"ScalarGe", kPair, Comparison, "GreaterOrEqual"},
    {"LogicalAnd", kPair, Logical, "And"},
    {"LogicalOr", kPair, Logical, "Or"},
    {"LogicalXor", kPair, Logical, "Xor"},
    {"LogicalNot", kOne, Logical, "Not"},
    {"Abs", kOne, Function, "Abs"},
    {"Neg", kOne, Function, "Neg"},
    {"Sign", kOne, Function, "Sign"},
    {"Ceil", kOne, Function, "Ceil"},
    {"Floor", kOne, Function, "Floor"},
    {"Rint", kOne, Function, "Round"},
    {"Round", "input decimals", Round},
    {"Sqrt", kOne, Function, "Sqrt"},
    {"Reciprocal", kOne, Function, "Reciprocal"},
    {"Exp", kOne, Function, "Exp"},
    {"Log", kOne, Function, "Log"},
    {"Erf", kOne, Function, "Erf"},
    {"Sin", kOne, Function, "Sin"},
    {"Cos", kOne, Function, "Cos"},
    {"Tan", kOne, Function, "Tan"},
    {"Asin", kOne, Function, "Asin"},
    {"ACos", kOne, Function, "Acos"},
    {"Atan", kOne, Function, "Atan"},
    {"Sinh", kOne, Function, "Sinh"},
    {"Cosh", kOne, Function, "Cosh"},
    {"Tanh", kOne, Function, "Tanh"},
    {"Asinh", kOne, Function, "Asinh"},
    {"Acosh", kOne, Function, "Acosh"},
    {"Atanh", kOne, Function, "Atanh"},
    {"Sigmoid", kOne, Function, "Sigmoid"},
    {"ReLU", kOne, Function, "Relu"},
    {"Mish", kOne, Function, "Mish"},
    {"SeLU", kOne, Function, "Selu"},
    {"SeLUExt", kOne, Function, "Selu"},
    {"Softsign", kOne, Function, "Softsign"},
    {"SiLU", kOne, Function, "Swish"},
    {"IsNan", kOne, Function, "IsNaN"},
    {"IsInf", kOne, Function, "IsInf"},
    {"Square", kOne, Square},
    {"Rsqrt", kOne, Rsqrt},
    {"Log1p", kOne, Log1p},
    {"Expm1", kOne, Expm1},
    {"Erfc", kOne, Erfc},
    {"Cast", "input dtype", Cast},
    {"ScalarCast", "input dtype", Cast},
    {"Identity", kOne, Same},
    {"TensorMove", kOne, Same},
    {"TensorToScalar", kOne, Same},
    {"ScalarToTensor", kOne, Same},
    {"GeLU", kOne, Gelu, "TANH"},
    {"FastGeLU", kOne, FastGelu},
    {"GeluExt", "input approximate", Gelu, "NONE"},
    {"Elu", "input alpha", Alpha, "Elu"},
    {"EluExt", "input alpha", Alpha, "Elu"},
    {"CeLU", "input alpha", Alpha, "Celu"},
    {"LeakyReLU", "input alpha", Alpha, "LeakyRelu"},
    {"LeakyReLUExt", "input negative_slope", LeakyReluExt},
    {"HSigmoid", kOne, HardSigmoid, "HardSigmoid"},
    {"HSwish", kOne, HardSigmoid, "HardSwish"},
    {"ReLU6", kOne, Relu6},
    {"PReLU", "input weight", Prelu},
    {"Softplus", "input", Softplus},
    {"SoftplusExt", "input beta threshold", Softplus},
    {"ClampScalar", "input min max", Clamp},
    {"ClampTensor", "input min max", Clamp},
    {"Select", "condition input other", Select},
    {"MaskedFill", "input mask value", MaskedFill},
    {"Dropout", "input keep_prob Seed0 Seed1", Dropout},
};

}  // namespace

std::span<const Rule> ElementwiseRules() { return kElementwiseRules; }

}  // namespace msrt::mindir_import
