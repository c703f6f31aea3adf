// Gradients of functions of one element, and two gradient ops for activations that large tensors
// pass through, where a formula of several nodes would read and write them several times:
// msrt.ReluGrad and msrt.GeluGrad.
#include <cmath>
#include <numbers>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/grad_builder.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

ValueId Select(GradBuilder& g, ValueId condition, ValueId a, ValueId b) {
  return g.Add("Where", {condition, a, b});
}
// `a` where the condition is true, otherwise zero.
ValueId Kept(GradBuilder& g, ValueId condition, ValueId a) {
  return Select(g, condition, a, g.Scalar(0, a));
}
ValueId Less(GradBuilder& g, ValueId a, double b) { return g.Add("Less", {a, g.Scalar(b, a)}); }
ValueId Greater(GradBuilder& g, ValueId a, double b) {
  return g.Add("Greater", {a, g.Scalar(b, a)});
}

// The gradient is that of the output times `slope`.
Status SetSlope(GradBuilder& g, ValueId slope) {
  g.Set(0, g.Times(g.grad(), slope));
  return OkStatus();
}

}  // namespace

Status GradIdentity(GradBuilder& g) {
  g.Set(0, g.grad());
  return OkStatus();
}

Status GradCast(GradBuilder& g) {
  g.Set(0, g.CastTo(g.grad(), g.input(0)));
  return OkStatus();
}

// ---- arithmetic and transcendental functions ----------------------------------------------------

Status GradNeg(GradBuilder& g) {
  g.Set(0, g.Negative(g.grad()));
  return OkStatus();
}

Status GradAbs(GradBuilder& g) { return SetSlope(g, g.Add("Sign", {g.input(0)})); }

Status GradReciprocal(GradBuilder& g) {
  g.Set(0, g.Negative(g.Times(g.grad(), g.Square(g.output(0)))));
  return OkStatus();
}

Status GradSqrt(GradBuilder& g) { return SetSlope(g, g.Over(0.5, g.output(0))); }

Status GradExp(GradBuilder& g) { return SetSlope(g, g.output(0)); }

Status GradLog(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.input(0)));
  return OkStatus();
}

// 2 / sqrt(pi) * exp(-x^2)
Status GradErf(GradBuilder& g) {
  const ValueId bell = g.Add("Exp", {g.Negative(g.Square(g.input(0)))});
  return SetSlope(g, g.Times(bell, 2 * std::numbers::inv_sqrtpi));
}

Status GradSin(GradBuilder& g) { return SetSlope(g, g.Add("Cos", {g.input(0)})); }

Status GradCos(GradBuilder& g) { return SetSlope(g, g.Negative(g.Add("Sin", {g.input(0)}))); }

Status GradTan(GradBuilder& g) { return SetSlope(g, g.Plus(g.Square(g.output(0)), 1)); }

Status GradAsin(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.Add("Sqrt", {g.Minus(1, g.Square(g.input(0)))})));
  return OkStatus();
}

Status GradAcos(GradBuilder& g) {
  const ValueId root = g.Add("Sqrt", {g.Minus(1, g.Square(g.input(0)))});
  g.Set(0, g.Negative(g.Over(g.grad(), root)));
  return OkStatus();
}

Status GradAtan(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.Plus(g.Square(g.input(0)), 1)));
  return OkStatus();
}

Status GradSinh(GradBuilder& g) { return SetSlope(g, g.Add("Cosh", {g.input(0)})); }

Status GradCosh(GradBuilder& g) { return SetSlope(g, g.Add("Sinh", {g.input(0)})); }

Status GradTanh(GradBuilder& g) { return SetSlope(g, g.Minus(1, g.Square(g.output(0)))); }

Status GradAsinh(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.Add("Sqrt", {g.Plus(g.Square(g.input(0)), 1)})));
  return OkStatus();
}

Status GradAcosh(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.Add("Sqrt", {g.Plus(g.Square(g.input(0)), -1)})));
  return OkStatus();
}

Status GradAtanh(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.Minus(1, g.Square(g.input(0)))));
  return OkStatus();
}

// ---- activations --------------------------------------------------------------------------------

Status GradSigmoid(GradBuilder& g) {
  return SetSlope(g, g.Times(g.output(0), g.Minus(1, g.output(0))));
}

Status GradRelu(GradBuilder& g) {
  g.Set(0, g.AddMsrt("ReluGrad", {g.grad(), g.output(0)}));
  return OkStatus();
}

Status GradLeakyRelu(GradBuilder& g) {
  const ValueId scaled = g.Times(g.grad(), g.op().Float("alpha"));
  g.Set(0, Select(g, Less(g, g.input(0), 0), scaled, g.grad()));
  return OkStatus();
}

// Below zero y = alpha * (exp(x) - 1), whose derivative is y + alpha.
Status GradElu(GradBuilder& g) {
  const ValueId slope = g.Plus(g.output(0), g.op().Float("alpha"));
  g.Set(0, Select(g, Less(g, g.input(0), 0), g.Times(g.grad(), slope), g.grad()));
  return OkStatus();
}

Status GradSelu(GradBuilder& g) {
  const double alpha = g.op().Float("alpha"), gamma = g.op().Float("gamma");
  const ValueId slope = g.Plus(g.output(0), alpha * gamma);
  g.Set(0, Select(g, Less(g, g.input(0), 0), g.Times(g.grad(), slope), g.Times(g.grad(), gamma)));
  return OkStatus();
}

// Below zero y = alpha * (exp(x / alpha) - 1), whose derivative is y / alpha + 1.
Status GradCelu(GradBuilder& g) {
  const ValueId slope = g.Plus(g.Times(g.output(0), 1 / g.op().Float("alpha")), 1);
  g.Set(0, Select(g, Less(g, g.input(0), 0), g.Times(g.grad(), slope), g.grad()));
  return OkStatus();
}

Status GradThresholdedRelu(GradBuilder& g) {
  g.Set(0, Kept(g, Greater(g, g.input(0), g.op().Float("alpha")), g.grad()));
  return OkStatus();
}

Status GradHardSigmoid(GradBuilder& g) {
  const ValueId inside = g.Add("And", {Greater(g, g.output(0), 0), Less(g, g.output(0), 1)});
  g.Set(0, Kept(g, inside, g.Times(g.grad(), g.op().Float("alpha"))));
  return OkStatus();
}

// x * (x / 6 + 1/2) between -3 and 3, x above.
Status GradHardSwish(GradBuilder& g) {
  const ValueId middle = g.Times(g.grad(), g.Plus(g.Times(g.input(0), 1.0 / 3), 0.5));
  const ValueId upper = Select(g, Less(g, g.input(0), 3), middle, g.grad());
  g.Set(0, Kept(g, Greater(g, g.input(0), -3), upper));
  return OkStatus();
}

Status GradSoftplus(GradBuilder& g) { return SetSlope(g, g.Add("Sigmoid", {g.input(0)})); }

// 1 / (1 + |x|)^2
Status GradSoftsign(GradBuilder& g) {
  g.Set(0, g.Over(g.grad(), g.Square(g.Plus(g.Add("Abs", {g.input(0)}), 1))));
  return OkStatus();
}

Status GradGelu(GradBuilder& g) {
  g.Set(0, g.AddMsrt("GeluGrad", {g.grad(), g.input(0)},
                     {{"approximate", std::string(g.op().String("approximate"))}}));
  return OkStatus();
}

// With t = tanh(softplus(x)): t + x * sigmoid(x) * (1 - t^2).
Status GradMish(GradBuilder& g) {
  const ValueId x = g.input(0), t = g.Add("Tanh", {g.Add("Softplus", {x})});
  const ValueId bend = g.Times(g.Add("Sigmoid", {x}), g.Minus(1, g.Square(t)));
  return SetSlope(g, g.Plus(t, g.Times(x, bend)));
}

// With s = sigmoid(alpha * x): s + alpha * y * (1 - s).
Status GradSwish(GradBuilder& g) {
  const double alpha = g.op().Float("alpha");
  const ValueId s = g.Add("Sigmoid", {g.Times(g.input(0), alpha)});
  return SetSlope(g, g.Plus(s, g.Times(g.Times(g.output(0), g.Minus(1, s)), alpha)));
}

Status GradShrink(GradBuilder& g) {
  const double lambd = g.op().Float("lambd");
  const ValueId outside = g.Add("Or", {Less(g, g.input(0), -lambd), Greater(g, g.input(0), lambd)});
  g.Set(0, Kept(g, outside, g.grad()));
  return OkStatus();
}

// x is raised to `min`, then lowered to `max`: the gradient goes to whichever of the three the
// output is.
Status GradClip(GradBuilder& g) {
  const auto bound = [&](std::string_view name, size_t i) {
    if (g.has_input(i)) return g.Add("Reshape", {g.input(i)}, {{"shape", std::vector<int64_t>{}}});
    return g.op().Has(name) ? g.Scalar(g.op().Float(name), g.input(0)) : kNoValue;
  };
  const auto set_bound = [&](size_t i, ValueId condition, ValueId gradient) {
    if (!g.wants(i)) return;
    const ValueId sum =
        g.Add("ReduceSum", {Kept(g, condition, gradient)}, {{"keepdims", int64_t{0}}});
    g.Set(i, g.ReshapeTo(sum, g.input(i)));
  };
  const ValueId low = bound("min", 1), high = bound("max", 2);
  ValueId raised = g.input(0), below = kNoValue, gradient = g.grad();
  if (low != kNoValue) {
    below = g.Add("Less", {g.input(0), low});
    raised = Select(g, below, low, raised);
  }
  if (high != kNoValue) {
    const ValueId above = g.Add("Greater", {raised, high});
    set_bound(2, above, gradient);
    gradient = Select(g, above, g.Scalar(0, gradient), gradient);
  }
  if (low != kNoValue) {
    set_bound(1, below, gradient);
    gradient = Select(g, below, g.Scalar(0, gradient), gradient);
  }
  g.Set(0, gradient);
  return OkStatus();
}

// ---- gradient ops -------------------------------------------------------------------------------

namespace {

// dY and a tensor of the same dims.
Status InferGradPair(InferContext& c) {
  Type type = c.input(0);
  if (!type.rank_known) type = c.input(1);
  if (c.input(0).rank_known && c.input(1).rank_known) {
    MSRT_RETURN_IF_ERROR(CheckRank(c, 1, type.rank()));
    for (int d = 0; d < type.rank(); ++d) {
      MSRT_ASSIGN_OR_RETURN(
          type.dims[d], SameDim(c.dims(0)[d], c.dims(1)[d], StrCat("dim ", d, " of the inputs")));
    }
  }
  c.SetOutput(0, std::move(type));
  return OkStatus();
}

Status GradReluGrad(GradBuilder& g) {
  if (g.wants(0)) g.Set(0, g.AddMsrt("ReluGrad", {g.grad(), g.input(1)}));
  return OkStatus();  // it does not change with Y but for a step
}

// gelu'(x) = Phi(x) + x * phi(x) and gelu''(x) = phi(x) * (2 - x^2) with the normal distribution
// Phi and its density phi.
ValueId GeluCurvature(GradBuilder& g, ValueId x) {
  const ValueId square = g.Square(x);
  const ValueId density = g.Times(g.Add("Exp", {g.Times(square, -0.5)}),
                                  std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return g.Times(density, g.Minus(2, square));
}

// gelu(x) = x * (1 + t) / 2 with t = tanh(u), u = c * (x + k * x^3):
// gelu''(x) = (1 - t^2) * (u' + x * u'' / 2 - x * t * u'^2).
ValueId GeluTanhCurvature(GradBuilder& g, ValueId x) {
  constexpr double kC = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kK = 0.044715;
  const ValueId square = g.Square(x);
  const ValueId t = g.Add("Tanh", {g.Times(g.Times(x, g.Plus(g.Times(square, kK), 1)), kC)});
  const ValueId slope = g.Times(g.Plus(g.Times(square, 3 * kK), 1), kC);
  const ValueId bend = g.Times(square, 3 * kC * kK);  // x * u'' / 2
  const ValueId turn = g.Times(g.Times(x, t), g.Square(slope));
  return g.Times(g.Minus(1, g.Square(t)), g.Minus(g.Plus(slope, bend), turn));
}

Status GradGeluGrad(GradBuilder& g) {
  const bool tanh = g.op().String("approximate") == "tanh";
  if (g.wants(0)) {
    g.Set(0, g.AddMsrt("GeluGrad", {g.grad(), g.input(1)},
                       {{"approximate", std::string(g.op().String("approximate"))}}));
  }
  if (g.wants(1)) {
    const ValueId curvature =
        tanh ? GeluTanhCurvature(g, g.input(1)) : GeluCurvature(g, g.input(1));
    g.Set(1, g.Times(g.Times(g.grad(), g.input(0)), curvature));
  }
  return OkStatus();
}

constexpr ParamDef kReluGradInputs[] = {{.name = "dY", .types = kFloatTypes, .group = 1},
                                        {.name = "Y", .types = kFloatTypes, .group = 1}};
constexpr ParamDef kGeluGradInputs[] = {{.name = "dY", .types = kFloatTypes, .group = 1},
                                        {.name = "X", .types = kFloatTypes, .group = 1}};
constexpr std::string_view kGeluForms[] = {"none", "tanh"};
constexpr AttrDef kGeluGradAttrs[] = {{.name = "approximate",
                                       .kind = AttrKind::kString,
                                       .default_string = "none",
                                       .choices = kGeluForms}};

constexpr OpDef kUnaryGradOps[] = {
    // dY where the output Y of Relu is positive, otherwise zero.
    {.name = "ReluGrad",
     .domain = "msrt",
     .version = 1,
     .inputs = kReluGradInputs,
     .infer = InferGradPair,
     .grad = GradReluGrad,
     .space = &kElementwiseSpace,
     .traits = kElementwise},
    // dY times the derivative of Gelu at X.
    {.name = "GeluGrad",
     .domain = "msrt",
     .version = 1,
     .attrs = kGeluGradAttrs,
     .inputs = kGeluGradInputs,
     .infer = InferGradPair,
     .grad = GradGeluGrad,
     .space = &kElementwiseSpace,
     .traits = kElementwise},
};

}  // namespace

std::span<const OpDef> UnaryGradOps() { return kUnaryGradOps; }

}  // namespace msrt
