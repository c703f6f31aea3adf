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

Result<Descriptor> DescribeWeightGrad(const OpView& op, Layout x, Layout grad) {
  MSRT_ASSIGN_OR_RETURN(const ConvolutionSteps steps,
                        ConvolutionStepsOf(op, op.input(kX).dims, op.output(0).dims));
  const memory::desc src = Describe(op.input(kX), x), dst = Describe(op.input(kGrad), grad);
  const memory::desc any(PlainGradient(op).get_dims(), memory::data_type::f32,
                         memory::format_tag::any);
  const dnnl::primitive_attr attr = UserScratchpad();
  const Forward hint(Engine(), dnnl::prop_kind::forward_training,
                     dnnl::algorithm::convolution_direct, src, any, memory::desc(), dst,
                     steps.strides, steps.dilations, steps.begin, steps.end, attr, true);
  if (hint.get(true) == nullptr) return Unsupported("oneDNN has no convolution for these shapes");
  Descriptor descriptor(Engine(), dnnl::algorithm::convolution_direct, src, any, memory::desc(),
                        dst, steps.strides, steps.dilations, steps.begin, steps.end, hint, attr,
                        true);
  if (descriptor.get(true) == nullptr || IsNaive(descriptor))
    return Unsupported("oneDNN has no gradient of the weights for these shapes");
  return descriptor;
}

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
    const auto descriptor = DescribeWeightGrad(typical, layout, layout);
    if (!descriptor.ok()) {
      reason = descriptor.status().message();
      continue;
    }
    candidates->push_back(
        MakeCandidate(node, layout, Layout::kPlain,
                      Roofline(node.machine, node.flops, Efficiency(layout), node.bytes),
                      layout == Layout::kPlain ? "gemm" : "jit"));
  }
  return candidates->empty() ? reason : std::string();
}

class WeightGradRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor,
                          DescribeWeightGrad(op, input_layout(kX), input_layout(kGrad)));
    const memory::desc made = descriptor.diff_weights_desc(), plain = PlainGradient(op);
    const Place result =
        made == plain ? Place::Output(0) : Place::Scratch(plan->Reserve(made.get_size()));
    plan->Add<Descriptor, dnnl::convolution_backward_weights>(
        descriptor, {{DNNL_ARG_SRC, Place::Input(kX), descriptor.src_desc()},
                     {DNNL_ARG_DIFF_DST, Place::Input(kGrad), descriptor.diff_dst_desc()},
                     {DNNL_ARG_DIFF_WEIGHTS, result, made}});
    if (made != plain) plan->AddReorder(result, made, Place::Output(0), plain);
    return OkStatus();
  }
};

constexpr Rule kWeightGradRules[] = {
    {"msrt", "ConvWeightGrad", QueryWeightGrad, CompileAs<WeightGradRecipe>}};

}  // namespace

std::span<const Rule> ConvolutionWeightGradRules() { return kWeightGradRules; }

}  // namespace msrt::onednn
