// msrt.ConvWeightGrad on the backward primitive of convolution. The gradient of the weights leaves
// in plain order: it is added to weights, which are plain between steps.
#include "delegates/onednn/convolution_steps.h"
#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Forward = dnnl::convolution_forward::primitive_desc;
using Descriptor = dnnl::convolution_backward_weights::primitive_desc;
constexpr size_t kX = 0, kGrad = 1;

memory::desc PlainGradient(const OpView& op) {
  return DescribePlain(GroupedWeights(op.output(0).dims, op.Int("group")));
}

// `reduced`: of operands in bf16; the result is f32.
Result<Descriptor> DescribeWeightGrad(const OpView& op, Layout x, Layout grad, bool reduced) {
  MSRT_ASSIGN_OR_RETURN(const ConvolutionSteps steps,
                        ConvolutionStepsOf(op, op.input(kX).dims, op.output(0).dims));
  memory::desc src = Describe(op.input(kX), x), dst = Describe(op.input(kGrad), grad);
  if (reduced) src = InBf16(src), dst = InBf16(dst);
  const memory::desc any(PlainGradient(op).get_dims(), memory::data_type::f32,
                         memory::format_tag::any);
  const dnnl::primitive_attr attr = UserScratchpad();
  const memory::desc hint_weights(any.get_dims(), src.get_data_type(), memory::format_tag::any);
  const Forward hint(Engine(), dnnl::prop_kind::forward_training,
                     dnnl::algorithm::convolution_direct, src, hint_weights, memory::desc(), dst,
                     steps.strides, steps.dilations, steps.begin, steps.end, attr, true);
  if (hint.get(true) == nullptr) return Unsupported("oneDNN has no convolution for these shapes");
  Descriptor descriptor(Engine(), dnnl::algorithm::convolution_direct, src, any, memory::desc(),
                        dst, steps.strides, steps.dilations, steps.begin, steps.end, hint, attr,
                        true);
  if (descriptor.get(true) == nullptr || IsNaive(descriptor))
    return Unsupported("oneDNN has no gradient of the weights for these shapes");
  return descriptor;
}

// Rounding an operand reads all of it and writes half as many bytes.
constexpr double kRoundingTraffic = 1.5;

double Efficiency(Layout layout) {
  return layout == Layout::kPlain ? 0.35 : layout == Layout::kChannelsLast ? 0.6 : 0.7;
}

// Which layouts have kernels differs from one processor to the next, so the library is asked.
std::string QueryWeightGrad(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView &op = *node.op, &typical = *node.typical;
  if (typical.input(kX).elements() == 0 || typical.input(kGrad).elements() == 0)
    return "an empty tensor";
  std::string reason = "constant inputs";
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast, BlockedLayout()}) {
    if (layout != Layout::kPlain &&
        (!HasLayout(node, kX) || !HasLayout(node, kGrad) || !Admits(op.input(kX), layout) ||
         !Admits(op.input(kGrad), layout)))
      continue;
    const auto descriptor = DescribeWeightGrad(typical, layout, layout, /*reduced=*/false);
    if (!descriptor.ok()) {
      reason = descriptor.status().message();
      continue;
    }
    candidates->push_back(
        MakeCandidate(node, layout, Layout::kPlain,
                      Roofline(node.machine, node.flops, Efficiency(layout), node.bytes),
                      layout == Layout::kPlain ? "gemm" : "jit"));
    if (layout != Layout::kChannelsLast || !HasBf16() || op.Int("group") != 1 ||
        !DescribeWeightGrad(typical, layout, layout, /*reduced=*/true).ok())
      continue;
    const auto rounded =
        static_cast<double>(typical.input(kX).bytes() + typical.input(kGrad).bytes());
    candidates->push_back(MakeCandidate(
        node, layout, Layout::kPlain,
        Roofline(node.machine, node.flops, kBf16Speedup * Efficiency(layout), node.bytes) +
            Roofline(node.machine, 0, 1, kRoundingTraffic * rounded),
        "jit bf16"));
    candidates->back().reduced = true;
  }
  return candidates->empty() ? reason : std::string();
}

class WeightGradRecipe final : public Recipe {
 public:
  WeightGradRecipe(const NodeInfo& node, const Candidate& candidate)
      : Recipe(node, candidate), reduced_(candidate.reduced) {}

  Status Build(const OpView& op, bool, Plan* plan) const override {
    auto described = DescribeWeightGrad(op, input_layout(kX), input_layout(kGrad), reduced_);
    // At other shapes there may be no kernel for bf16.
    if (!described.ok() && reduced_)
      described = DescribeWeightGrad(op, input_layout(kX), input_layout(kGrad), false);
    MSRT_RETURN_IF_ERROR(described.status());
    const Descriptor& descriptor = *described;
    const memory::desc made = descriptor.diff_weights_desc(), plain = PlainGradient(op);
    const Place result =
        made == plain ? Place::Output(0) : Place::Scratch(plan->Reserve(made.get_size()));
    plan->Add<Descriptor, dnnl::convolution_backward_weights>(
        descriptor, {{DNNL_ARG_SRC, InputAs(op, kX, descriptor.src_desc(), plan),
                      descriptor.src_desc()},
                     {DNNL_ARG_DIFF_DST, InputAs(op, kGrad, descriptor.diff_dst_desc(), plan),
                      descriptor.diff_dst_desc()},
                     {DNNL_ARG_DIFF_WEIGHTS, result, made}});
    if (made != plain) plan->AddReorder(result, made, Place::Output(0), plain);
    return OkStatus();
  }

 private:
  Place InputAs(const OpView& op, size_t i, const memory::desc& wanted, Plan* plan) const {
    return plan->Converted(Place::Input(i), Describe(op.input(i), input_layout(i)), wanted);
  }

  const bool reduced_;
};

constexpr Rule kWeightGradRules[] = {
    {"msrt", "ConvWeightGrad", QueryWeightGrad, CompileAs<WeightGradRecipe>}};

}  // namespace

std::span<const Rule> ConvolutionWeightGradRules() { return kWeightGradRules; }

}  // namespace msrt::onednn
