// Elementwise ops as primitives of MindSpore.
#include <cmath>

#include "ops/activation.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

// The primitive has the same inputs and another name.
Status Rename(NodeLowering& n) {
  Args args;
  for (Ref& input : n.AllInputs()) args.emplace_back(std::move(input));
  n.SetOutput(n.Op(n.primitive(), args));
  return OkStatus();
}

Status RenamePrim(NodeLowering& n) {
  Args args;
  for (Ref& input : n.AllInputs()) args.emplace_back(std::move(input));
  n.SetOutput(n.Prim(n.primitive(), {}, args));
  return OkStatus();
}

Status LowerIdentity(NodeLowering& n) {
  n.SetOutput(n.In(0));
  return OkStatus();
}

// Combines the inputs two at a time.
Status LowerChain(NodeLowering& n) {
  const std::vector<Ref> inputs = n.AllInputs();
  Ref result = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) result = n.Op(n.primitive(), {result, inputs[i]});
  if (n.node().op == "Mean")
    result = n.Op("RealDiv", {result, n.Number(static_cast<double>(inputs.size()))});
  n.SetOutput(result);
  return OkStatus();
}

Status LowerDiv(NodeLowering& n) {
  if (IsFloat(n.dtype())) n.SetOutput(n.Op("RealDiv", {n.In(0), n.In(1)}));
  else n.SetOutput(n.Prim("TruncateDiv", {}, {n.In(0), n.In(1)}));
  return OkStatus();
}

Status LowerMod(NodeLowering& n) {
  if (n.op().Int("fmod") == 0) n.SetOutput(n.Op("FloorMod", {n.In(0), n.In(1)}));
  else n.SetOutput(n.Prim("TruncateMod", {}, {n.In(0), n.In(1)}));
  return OkStatus();
}

Ref AsType(NodeLowering& n, const Ref& x, DType from, DType to) {
  return from == to ? x : n.Op("Cast", {x, TypeIdOf(to)});
}

// The result has the type of the base; a fractional exponent of an integer must not lose its
// fraction.
Status LowerPow(NodeLowering& n) {
  const DType base = n.dtype(), exponent = n.type(1).dtype;
  const DType in = IsFloat(exponent) && !IsFloat(base) ? DType::kF64 : base;
  n.SetOutput(AsType(
      n, n.Op("Pow", {AsType(n, n.In(0), base, in), AsType(n, n.In(1), exponent, in)}), in, base));
  return OkStatus();
}

Status LowerShift(NodeLowering& n) {
  n.SetOutput(n.Prim(n.op().String("direction") == "LEFT" ? "LeftShift" : "RightShift", {},
                     {n.In(0), n.In(1)}));
  return OkStatus();
}

// MindSpore has no such op on the CPU.
Status LowerBitwiseNot(NodeLowering& n) {
  const std::vector<std::byte> ones(BytesOf(n.dtype(), 1), std::byte{0xff});
  n.SetOutput(n.Prim("BitwiseXor", {},
                     {n.In(0), n.out().Constant(ConstTensor::Copy(n.dtype(), {}, ones))}));
  return OkStatus();
}

Status LowerCast(NodeLowering& n) {
  const DType to = n.op().Dtype("to");
  const Ref x = n.In(0);
  // A cast to bool means "not zero" here and "the lowest byte" in MindSpore for some types.
  if (to == DType::kBool && n.dtype() != DType::kBool)
    n.SetOutput(n.Op("NotEqual", {x, n.Number(0)}));
  else n.SetOutput(n.Op("Cast", {x, TypeIdOf(to)}));
  return OkStatus();
}

Status LowerRound(NodeLowering& n) {
  n.SetOutput(n.Op("Round", {n.In(0), 0}));
  return OkStatus();
}

Status LowerIsInf(NodeLowering& n) {
  const bool negative = n.op().Int("detect_negative") != 0,
             positive = n.op().Int("detect_positive") != 0;
  const Ref x = n.In(0);
  Ref result = n.Op("IsInf", {x});
  if (!negative) result = n.Op("LogicalAnd", {result, n.Op("Greater", {x, n.Number(0)})});
  if (!positive) result = n.Op("LogicalAnd", {result, n.Op("Less", {x, n.Number(0)})});
  n.SetOutput(result);
  return OkStatus();
}

Ref Clip(NodeLowering& n, const Ref& x, const Ref& low, const Ref& high) {
  return n.Op("Minimum", {n.Op("Maximum", {x, low}), high});
}

// Returns the nearest number within the bound that the type can represent.
double BoundFor(DType dtype, double bound, bool lower) {
  return IsFloat(dtype) ? bound : lower ? std::ceil(bound) : std::floor(bound);
}

Status LowerClip(NodeLowering& n) {
  Ref x = n.In(0);
  const auto bound = [&](std::string_view attr, size_t input) -> std::optional<Ref> {
    if (n.op().Has(attr)) return n.Number(BoundFor(n.dtype(), n.op().Float(attr), attr == "min"));
    if (!n.Has(input)) return std::nullopt;
    return n.type(input).rank() == 1 ? n.Op("Reshape", {n.In(input), Ints{}}) : n.In(input);
  };
  if (const auto low = bound("min", 1)) x = n.Op("Maximum", {x, *low});
  if (const auto high = bound("max", 2)) x = n.Op("Minimum", {x, *high});
  n.SetOutput(x);
  return OkStatus();
}

// Returns `negative` where x < 0, else `positive`.
Ref Choose(NodeLowering& n, const Ref& x, const Ref& positive, const Ref& negative) {
  return n.Op("Select", {n.Op("Less", {x, n.Number(0)}), negative, positive});
}

Ref Scaled(NodeLowering& n, const Ref& x, double factor) {
  return factor == 1 ? x : n.Op("Mul", {x, n.Number(factor)});
}

// Returns alpha * (exp(x / divisor) - 1) for x < 0.
Ref ExpBelow(NodeLowering& n, const Ref& x, double alpha, double divisor) {
  const Ref below = n.Op("Minimum", {x, n.Number(0)});  // elements not chosen must not overflow
  return Scaled(n,
                n.Op("Expm1", {divisor == 1 ? below : n.Op("RealDiv", {below, n.Number(divisor)})}),
                alpha);
}

Ref GeluByErf(NodeLowering& n, const Ref& x) {
  const Ref erf = n.Op("Erf", {n.Op("Mul", {x, n.Number(std::sqrt(0.5))})});
  return n.Op("Mul", {n.Op("Mul", {x, n.Number(0.5)}), n.Op("Add", {erf, n.Number(1)})});
}

Ref HardSigmoid(NodeLowering& n, const Ref& x, double alpha, double beta) {
  return Clip(n, n.Op("Add", {Scaled(n, x, alpha), n.Number(beta)}), n.Number(0), n.Number(1));
}

struct Activation {
  std::string_view name;
  Ref (*apply)(NodeLowering&, const Ref& x, double alpha, double beta);
};
constexpr Activation kActivationForms[] = {
    {"", [](NodeLowering&, const Ref& x, double, double) { return x; }},
    {"Relu", [](NodeLowering& n, const Ref& x, double, double) { return n.Op("ReLU", {x}); }},
    {"LeakyRelu", [](NodeLowering& n, const Ref& x, double a,
                     double) { return Choose(n, x, x, Scaled(n, x, a)); }},
    {"Sigmoid", [](NodeLowering& n, const Ref& x, double, double) { return n.Op("Sigmoid", {x}); }},
    {"Tanh", [](NodeLowering& n, const Ref& x, double, double) { return n.Op("Tanh", {x}); }},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish",
     [](NodeLowering& n, const Ref& x, double, double) { return n.Op("HSwish", {x}); }},
    {"Clip", [](NodeLowering& n, const Ref& x, double a,
                double b) { return Clip(n, x, n.Number(a), n.Number(b)); }},
    {"Gelu", [](NodeLowering& n, const Ref& x, double, double) { return GeluByErf(n, x); }},
    {"GeluTanh", [](NodeLowering& n, const Ref& x, double, double) { return n.Op("GeLU", {x}); }},
    {"Elu", [](NodeLowering& n, const Ref& x, double a,
               double) { return Choose(n, x, x, ExpBelow(n, x, a, 1)); }},
    {"Swish",
     [](NodeLowering& n, const Ref& x, double a, double) {
       return n.Op("Mul", {x, n.Op("Sigmoid", {Scaled(n, x, a)})});
     }},
    {"Mish", [](NodeLowering& n, const Ref& x, double, double) { return n.Prim("Mish", {}, {x}); }},
    {"Softplus",
     [](NodeLowering& n, const Ref& x, double, double) { return n.Prim("Softplus", {}, {x}); }},
};

// Ops that are activations, with the attributes that the op has.
Status LowerNamedActivation(NodeLowering& n) {
  const auto number = [&](std::string_view attr) {
    for (const AttrDef& def : n.op().attr_defs()) {
      if (def.name == attr) return n.op().Float(attr);
    }
    return 0.0;
  };
  const bool tanh = n.node().op == "Gelu" && n.op().String("approximate") == "tanh";
  n.SetOutput(LowerActivation(n, n.In(0), tanh ? "GeluTanh" : n.node().op, number("alpha"),
                              number("beta")));
  return OkStatus();
}

Status LowerSelu(NodeLowering& n) {
  const Ref x = n.In(0);
  n.SetOutput(
      Scaled(n, Choose(n, x, x, ExpBelow(n, x, n.op().Float("alpha"), 1)), n.op().Float("gamma")));
  return OkStatus();
}

Status LowerCelu(NodeLowering& n) {
  const Ref x = n.In(0);
  const double alpha = n.op().Float("alpha");
  n.SetOutput(Choose(n, x, x, ExpBelow(n, x, alpha, alpha)));
  return OkStatus();
}

Status LowerPRelu(NodeLowering& n) {
  const Ref x = n.In(0);
  n.SetOutput(n.Op("Select", {n.Op("Less", {x, n.Number(0)}), n.Op("Mul", {x, n.In(1)}), x}));
  return OkStatus();
}

Status LowerThresholdedRelu(NodeLowering& n) {
  const Ref x = n.In(0);
  n.SetOutput(
      n.Op("Select", {n.Op("Greater", {x, n.Number(n.op().Float("alpha"))}), x, n.Number(0)}));
  return OkStatus();
}

Status LowerShrink(NodeLowering& n) {
  const DType in =
      IsFloat(n.dtype()) ? n.dtype() : DType::kF64;  // an addend of an integer may have a fraction
  const Ref x = AsType(n, n.In(0), n.dtype(), in);
  const auto number = [&](double value) { return n.Number(value, in); };
  const double lambd = n.op().Float("lambd"), bias = n.op().Float("bias");
  const Ref above = n.Op(
      "Select", {n.Op("Greater", {x, number(lambd)}), n.Op("Sub", {x, number(bias)}), number(0)});
  const Ref shrunk =
      n.Op("Select", {n.Op("Less", {x, number(-lambd)}), n.Op("Add", {x, number(bias)}), above});
  n.SetOutput(AsType(n, shrunk, in, n.dtype()));
  return OkStatus();
}

constexpr Lowerer kElementwiseLowerers[] = {
    {"Identity", LowerIdentity},
    {"Abs", Rename, "Abs"},
    {"Neg", Rename, "Neg"},
    {"Sign", Rename, "Sign"},
    {"Ceil", Rename, "Ceil"},
    {"Floor", Rename, "Floor"},
    {"Round", LowerRound},
    {"Sqrt", Rename, "Sqrt"},
    {"Reciprocal", Rename, "Reciprocal"},
    {"Exp", Rename, "Exp"},
    {"Log", Rename, "Log"},
    {"Erf", Rename, "Erf"},
    {"Sin", Rename, "Sin"},
    {"Cos", Rename, "Cos"},
    {"Tan", Rename, "Tan"},
    {"Asin", Rename, "Asin"},
    {"Acos", Rename, "ACos"},
    {"Atan", Rename, "Atan"},
    {"Sinh", Rename, "Sinh"},
    {"Cosh", Rename, "Cosh"},
    {"Tanh", Rename, "Tanh"},
    {"Asinh", Rename, "Asinh"},
    {"Acosh", Rename, "Acosh"},
    {"Atanh", Rename, "Atanh"},
    {"Sigmoid", Rename, "Sigmoid"},
    {"Relu", Rename, "ReLU"},
    {"Softsign", RenamePrim, "Softsign"},
    {"LeakyRelu", LowerNamedActivation},
    {"Elu", LowerNamedActivation},
    {"HardSigmoid", LowerNamedActivation},
    {"HardSwish", LowerNamedActivation},
    {"Softplus", LowerNamedActivation},
    {"Gelu", LowerNamedActivation},
    {"Mish", LowerNamedActivation},
    {"Swish", LowerNamedActivation},
    {"Selu", LowerSelu},
    {"Celu", LowerCelu},
    {"PRelu", LowerPRelu},
    {"ThresholdedRelu", LowerThresholdedRelu},
    {"Shrink", LowerShrink},
    {"Clip", LowerClip},
    {"Cast", LowerCast},
    {"Not", Rename, "LogicalNot"},
    {"BitwiseNot", LowerBitwiseNot},
    {"IsNaN", RenamePrim, "IsNan"},
    {"IsInf", LowerIsInf},
    {"Add", Rename, "Add"},
    {"Sub", Rename, "Sub"},
    {"Mul", Rename, "Mul"},
    {"Div", LowerDiv},
    {"Mod", LowerMod},
    {"Pow", LowerPow},
    {"Max", LowerChain, "Maximum"},
    {"Min", LowerChain, "Minimum"},
    {"Sum", LowerChain, "Add"},
    {"Mean", LowerChain, "Add"},
    {"BitShift", LowerShift},
    {"BitwiseAnd", RenamePrim, "BitwiseAnd"},
    {"BitwiseOr", RenamePrim, "BitwiseOr"},
    {"BitwiseXor", RenamePrim, "BitwiseXor"},
    {"And", Rename, "LogicalAnd"},
    {"Or", Rename, "LogicalOr"},
    {"Xor", Rename, "LogicalXor"},
    {"Equal", Rename, "Equal"},
    {"Greater", Rename, "Greater"},
    {"GreaterOrEqual", Rename, "GreaterEqual"},
    {"Less", Rename, "Less"},
    {"LessOrEqual", Rename, "LessEqual"},
    {"Where", Rename, "Select"},
};

}  // namespace

Ref LowerActivation(NodeLowering& n, const Ref& x, std::string_view activation, double alpha,
                    double beta) {
  for (const Activation& form : kActivationForms) {
    if (form.name == activation) return form.apply(n, x, alpha, beta);
  }
  return x;  // inference has accepted no other name
}

std::span<const Lowerer> ElementwiseLowerers() { return kElementwiseLowerers; }

}  // namespace msrt::mindir_export
