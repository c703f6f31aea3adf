// Unary ops on the eltwise primitive.
#include <algorithm>
#include <limits>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/post_ops.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::eltwise_forward;

// An input that is one constant number.
std::optional<double> NumberIn(const OpView& op, size_t input) {
  const ConstTensor* value = op.constant(input);
  if (value == nullptr || value->dtype != DType::kF32 || value->As<float>().size() != 1) return std::nullopt;
  return value->As<float>()[0];
}

// One bound of Clip: an attribute, a constant input, or open.
std::optional<double> Bound(const OpView& op, std::string_view attr, size_t input, double open) {
  if (op.Has(attr)) return op.Float(attr);
  return op.has_input(input) ? NumberIn(op, input) : open;
}

std::optional<Eltwise> EltwiseOf(const OpView& op) {
  const std::string_view name = op.op();
  if (name == "Clip") {
    const double open = std::numeric_limits<float>::infinity();
    const auto low = Bound(op, "min", 1, -open), high = Bound(op, "max", 2, open);
    // ONNX lets the upper bound win where the bounds cross; the library does not say.
    if (!low || !high || !(*low <= *high)) return std::nullopt;
    return FindEltwise(name, *low, *high);
  }
  // Other powers of the library err by more than the rest of it.
  if (name == "Pow") return NumberIn(op, 1) == 2.0 ? std::optional(Eltwise{dnnl::algorithm::eltwise_square}) : std::nullopt;
  if (name == "Gelu") return FindEltwise(op.String("approximate") == "tanh" ? "GeluTanh" : "Gelu", 0, 0);
  if (name == "HardSigmoid") return FindEltwise(name, op.Float("alpha"), op.Float("beta"));
  if (name == "LeakyRelu" || name == "Elu" || name == "Swish") return FindEltwise(name, op.Float("alpha"), 0);
  return FindEltwise(name, 0, 0);
}

// Functions that the library computes on a clamped argument.
bool DropsNan(std::string_view name) { return name == "Relu" || name == "Clip" || name == "HardSigmoid" || name == "Exp"; }

std::string QueryEltwise(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (!EltwiseOf(op) && op.op() == "Clip") return "bounds that are not constant or cross";
  if (!EltwiseOf(op)) return op.op() == "Pow" ? "an exponent that is not the constant 2" : "no such function in oneDNN";
  const bool tanh = op.op() == "Gelu" && op.String("approximate") == "tanh";
  const double nanoseconds = EltwiseNanoseconds(tanh ? "GeluTanh" : op.op());
  const double seconds = PerElement(node.machine, static_cast<double>(node.typical->output(0).elements()), nanoseconds, node.bytes);
  for (const Layout layout : kAllLayouts) {
    if (!Admits(op.input(0), layout) || (layout != Layout::kPlain && !HasLayout(node, 0))) continue;
    Candidate c = MakeCandidate(node, layout, layout, seconds, "jit");
    c.in_place = {{0u, 0u}};
    candidates->push_back(std::move(c));
  }
  return {};
}

class EltwiseRecipe final : public Recipe {
 public:
  EltwiseRecipe(const NodeInfo& node, const Candidate& candidate, Eltwise eltwise) : Recipe(node, candidate), eltwise_(eltwise) {}

  // The elements are a vector in whatever layout: blocks are full, so all bytes are elements.
  Status Build(const OpView& op, bool, Plan* plan) const override {
    const memory::desc desc = DescribePlain({op.input(0).elements()});
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference, eltwise_.algorithm, desc, desc, eltwise_.alpha,
                                               eltwise_.beta, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor,
                                                    {{DNNL_ARG_SRC, Place::Input(0), desc}, {DNNL_ARG_DST, Place::Output(0), desc}});
    return OkStatus();
  }
  bool drops_nan() const override { return DropsNan(op().op()); }
  // With AVX-512 the library multiplies 0 by infinity.
  bool needs_finite() const override { return eltwise_.algorithm == dnnl::algorithm::eltwise_gelu_erf; }

 private:
  Eltwise eltwise_;
};

Result<std::shared_ptr<const Recipe>> CompileEltwise(const NodeInfo& node, const Candidate& candidate, const CompileContext&) {
  const auto eltwise = EltwiseOf(*node.op);
  if (!eltwise) return InternalError("onednn: asked to compile ", node.op->op(), ", which it refused");
  return std::shared_ptr<const Recipe>(std::make_shared<EltwiseRecipe>(node, candidate, *eltwise));
}

constexpr Rule Unary(std::string_view op) { return {"", op, QueryEltwise, CompileEltwise}; }
constexpr Rule kEltwiseRules[] = {
    Unary("Relu"), Unary("LeakyRelu"), Unary("Sigmoid"), Unary("Tanh"),  Unary("HardSigmoid"), Unary("HardSwish"), Unary("Clip"),
    Unary("Gelu"), Unary("Elu"),       Unary("Swish"),   Unary("Mish"),  Unary("Softplus"),    Unary("Exp"),       Unary("Log"),
    Unary("Abs"),  Unary("Sqrt"),      Unary("Neg"),     Unary("Round"), Unary("Pow"),
};

}  // namespace

std::span<const Rule> EltwiseRules() { return kEltwiseRules; }

}  // namespace msrt::onednn
