// Functions of one f32 tensor. Elements are a vector in whatever layout, since blocks are full.
#include <algorithm>
#include <limits>
#include <optional>

#include "delegates/cpu/activation.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

// An input that is one constant number.
std::optional<float> NumberIn(const OpView& op, size_t input) {
  const ConstTensor* value = op.constant(input);
  if (value == nullptr || value->dtype != DType::kF32 || value->As<float>().size() != 1)
    return std::nullopt;
  return value->As<float>()[0];
}

// One bound of Clip: an attribute, a constant input, or open.
std::optional<float> Bound(const OpView& op, std::string_view attr, size_t input, float open) {
  if (op.Has(attr)) return static_cast<float>(op.Float(attr));
  return op.has_input(input) ? NumberIn(op, input) : open;
}

// Nothing where the parameters are not known or the function is another one.
std::optional<Activation> FunctionOf(const OpView& op) {
  const std::string_view name = op.op();
  const auto alpha = [&] { return static_cast<float>(op.Float("alpha")); };
  if (name == "Clip") {
    constexpr float kOpen = std::numeric_limits<float>::infinity();
    const auto low = Bound(op, "min", 1, -kOpen), high = Bound(op, "max", 2, kOpen);
    if (!low || !high) return std::nullopt;
    return Activation{Unary::kClip, *low, *high};
  }
  if (name == "Pow") {
    const auto exponent = NumberIn(op, 1);
    if (exponent == 2.0f) return Activation{Unary::kSquare};
    if (exponent == 0.5f) return Activation{Unary::kSqrt};
    if (exponent == -1.0f) return Activation{Unary::kReciprocal};
    return std::nullopt;
  }
  if (name == "Gelu" && op.String("approximate") == "tanh") return Activation{Unary::kGeluTanh};
  const Unary function = FindUnary(name)->function;
  if (name == "HardSigmoid")
    return Activation{function, alpha(), static_cast<float>(op.Float("beta"))};
  if (name == "LeakyRelu" || name == "Elu" || name == "Swish") return Activation{function, alpha()};
  return Activation{function};
}

double Nanoseconds(const OpView& op) {
  const auto found = FindUnary(op.op());
  return found ? found->nanoseconds : 0.1;  // Pow with one of a few exponents
}

std::string QueryUnary(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(0).dtype != DType::kF32 || op.output(0).dtype != DType::kF32)
    return StrCat("elements of type ", op.input(0).dtype);
  if (!FunctionOf(op))
    return op.op() == "Pow" ? "an exponent other than the constants 2, 0.5 and -1"
                            : "bounds that are not constant";
  const double seconds = PassSeconds(node, static_cast<double>(node.typical->output(0).elements()),
                                     Nanoseconds(op), node.bytes);
  for (const Layout layout : OfferedLayouts()) {
    if (!Admits(op.input(0), layout) || (layout != Layout::kPlain && op.constant(0) != nullptr))
      continue;
    Candidate c = PlainCandidate(node, seconds, "vectorised");
    c.input_layouts[0] = c.output_layouts[0] = layout;
    c.in_place = {{0u, 0u}};
    c.strided_inputs = c.strided_outputs = 1;
    c.arithmetic = ArithmeticOf(op);
    candidates->push_back(std::move(c));
  }
  return {};
}

class BoundUnary final : public BoundKernel {
 public:
  BoundUnary(Activation function, int64_t elements) : function_(function), elements_(elements) {}
  Status Run(const RunArgs& args) override {
    const UnaryLoop loop = LoopsHere().unary[static_cast<size_t>(*function_.function)];
    const float* x = args.inputs[0].As<float>();
    float* y = args.outputs[0].As<float>();
    if (args.inputs[0].strides != nullptr || args.outputs[0].strides != nullptr)
      return RunLines(args, loop);
    return ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      loop(x + begin, y + begin, end - begin, function_.alpha, function_.beta);
    });
  }

 private:
  Status RunLines(const RunArgs& args, UnaryLoop loop) const {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    const Dims steps[] = {StepsInMemory(x), StepsInMemory(y)};
    const Lines lines(InMemory(y.dims, y.layout), steps);
    const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(lines.columns, 1));
    return ParallelRanges(args.parallel, lines.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        loop(x.As<float>() + lines.Offset(0, i), y.As<float>() + lines.Offset(1, i), lines.columns,
             function_.alpha, function_.beta);
    });
  }

  const Activation function_;
  const int64_t elements_;
};

Result<std::unique_ptr<BoundKernel>> BindUnary(const OpView& op, const Candidate&) {
  const auto function = FunctionOf(op);
  if (!function) return InternalError("cpu: asked to bind ", op.op(), ", which it refused");
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundUnary>(*function, op.output(0).elements()));
}

constexpr Rule Of(std::string_view op) { return {"", op, QueryUnary, BindUnary}; }
constexpr Rule kUnaryRules[] = {
    Of("Relu"),  Of("LeakyRelu"), Of("Sigmoid"), Of("Tanh"), Of("HardSigmoid"), Of("HardSwish"),
    Of("Gelu"),  Of("Elu"),       Of("Swish"),   Of("Mish"), Of("Softplus"),    Of("Exp"),
    Of("Log"),   Of("Erf"),       Of("Abs"),     Of("Neg"),  Of("Sqrt"),        Of("Reciprocal"),
    Of("Round"), Of("Floor"),     Of("Ceil"),    Of("Clip"), Of("Pow"),
};

}  // namespace

std::span<const Rule> UnaryRules() { return kUnaryRules; }

}  // namespace msrt::cpu
