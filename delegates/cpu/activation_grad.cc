// msrt.ReluGrad and msrt.GeluGrad, in every layout: both inputs and the result are one vector.
#include "core/abi/msrt_plugin.h"
#include "delegates/cpu/rule.h"

namespace msrt::cpu {
namespace {

bool IsRelu(const OpView& op) { return op.op() == "ReluGrad"; }

PairLoop LoopOf(const OpView& op) {
  if (IsRelu(op)) return LoopsHere().relu_gradient;
  return op.String("approximate") == "tanh" ? LoopsHere().gelu_tanh_gradient
                                            : LoopsHere().gelu_gradient;
}

std::string QueryActivationGrad(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.output(0).dtype != DType::kF32) return StrCat("elements of type ", op.output(0).dtype);
  const double seconds = PassSeconds(node, static_cast<double>(node.typical->output(0).elements()),
                                     IsRelu(op) ? 0.06 : 1.5, node.bytes);
  for (const Layout layout : OfferedLayouts()) {
    const bool constant = op.constant(0) != nullptr || op.constant(1) != nullptr;
    if (!Admits(op.input(0), layout) || !Admits(op.input(1), layout) ||
        (layout != Layout::kPlain && constant))
      continue;
    Candidate c = PlainCandidate(node, seconds, "vectorised");
    c.input_layouts[0] = c.input_layouts[1] = c.output_layouts[0] = layout;
    c.in_place = {{0u, 0u}, {1u, 0u}};
    c.arithmetic = IsRelu(op) ? MSRT_ARITHMETIC_ROUNDED : ArithmeticOfLoops();
    candidates->push_back(std::move(c));
  }
  return {};
}

class BoundActivationGrad final : public BoundKernel {
 public:
  BoundActivationGrad(PairLoop loop, int64_t elements) : loop_(loop), elements_(elements) {}
  Status Run(const RunArgs& args) override {
    const float *grad = args.inputs[0].As<float>(), *other = args.inputs[1].As<float>();
    float* y = args.outputs[0].As<float>();
    return ParallelRanges(args.parallel, elements_, kGrain, [&](int64_t begin, int64_t end) {
      loop_(grad + begin, other + begin, y + begin, end - begin);
    });
  }

 private:
  const PairLoop loop_;
  const int64_t elements_;
};

Result<std::unique_ptr<BoundKernel>> BindActivationGrad(const OpView& op, const Candidate&) {
  return std::unique_ptr<BoundKernel>(
      std::make_unique<BoundActivationGrad>(LoopOf(op), op.output(0).elements()));
}

constexpr Rule kActivationGradRules[] = {
    {"msrt", "ReluGrad", QueryActivationGrad, BindActivationGrad},
    {"msrt", "GeluGrad", QueryActivationGrad, BindActivationGrad}};

}  // namespace

std::span<const Rule> ActivationGradRules() { return kActivationGradRules; }

}  // namespace msrt::cpu
