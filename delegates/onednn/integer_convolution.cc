// ConvInteger and msrt.QuantizedConv: the convolution primitive on bytes in channels-last, with
// 32-bit sums.
#include "core/abi/msrt_plugin.h"
#include "delegates/onednn/convolution_steps.h"
#include "delegates/onednn/cost.h"
#include "delegates/onednn/integer_operands.h"
#include "delegates/onednn/post_ops.h"

namespace msrt::onednn {
namespace {

using Descriptor = dnnl::convolution_forward::primitive_desc;

// The share of the peak in f32 that the library's kernels reach.
double Efficiency(const OpView& op) {
  const IntegerInputs& in = IntegerInputsOf(op);
  const int64_t groups = op.Int("group"), inputs = op.input(in.a).dims[1];
  if (groups > 1 && groups == inputs) return 0.45;
  if (inputs / groups < 8) return 0.35 * kByteSpeedup;
  return kByteSpeedup;
}

std::string QueryIntegerConvolution(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const IntegerInputs& in = IntegerInputsOf(op);
  if (!HasLayout(node, in.a)) return "a constant x";
  if (op.has_input(in.residual) && !HasLayout(node, in.residual)) return "a constant residual";
  if (std::string reason = ActivationRefusal(op); !reason.empty()) return reason;
  if (std::string reason = IntegerRefusal(node); !reason.empty()) return reason;
  if (const auto zero = WeightZero(op); !zero.ok() || *zero != 0)
    return "weights with a zero point (128 for u8 is none)";
  const double activation = FlopsIn(EltwiseNanoseconds(op.String("activation")) *
                                    static_cast<double>(node.typical->output(0).elements()));
  const double efficiency = Efficiency(*node.typical);
  const double seconds =
      Roofline(node.machine, node.flops + activation * efficiency, efficiency, node.bytes);
  Candidate c =
      MakeCandidate(node, Layout::kChannelsLast, Layout::kChannelsLast, seconds, "jit int8");
  c.input_layouts[in.b] = Layout::kPlain;
  if (op.domain().empty()) c.arithmetic = MSRT_ARITHMETIC_ROUNDED;  // sums of integers
  if (op.has_input(in.residual) && op.output(0).dtype == DType::kF32)
    c.in_place = {{static_cast<uint32_t>(in.residual), 0u}};
  candidates->push_back(std::move(c));
  return {};
}

class IntegerConvolutionRecipe final : public Recipe {
 public:
  IntegerConvolutionRecipe(const NodeInfo& node, const Candidate& candidate,
                           const CompileContext& context)
      : Recipe(node, candidate), in_(IntegerInputsOf(op())) {
    const ConstTensor* w = op().constant(in_.b);
    if (w == nullptr) return;
    weights_ = std::make_unique<PackedWeights>(w->bytes.data(),
                                               PlainWeights(*node.typical, ToDnnl(w->dtype)),
                                               context, PackedVariant(op()));
  }

  Status Pack(const OpView& typical) {
    if (weights_ == nullptr || typical.input(in_.a).elements() == 0 ||
        typical.output(0).elements() == 0)
      return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor,
                          Describe(typical, PostOpsOf(typical, false)));
    packed_ = descriptor.weights_desc();
    return weights_->Get(packed_).status();
  }

  Status Build(const OpView& op, bool shared_residual, Plan* plan) const override {
    const PostOps post_ops = PostOpsOf(op, shared_residual);
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor, Describe(op, post_ops));
    const memory::desc wanted = descriptor.weights_desc();
    Place weights = Place::Input(in_.b);
    if (weights_ != nullptr) {
      MSRT_ASSIGN_OR_RETURN(const void* packed, weights_->Get(wanted));
      weights = Place::Fixed(packed);
    } else {
      const Place bytes = PlaceBytes(op, in_.b, plan);
      weights = Place::Scratch(plan->Reserve(wanted.get_size()));
      plan->AddReorder(bytes, PlainWeights(op, memory::data_type::s8), weights, wanted);
    }
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Place::Input(in_.a), descriptor.src_desc()},
                                    {DNNL_ARG_WEIGHTS, weights, wanted},
                                    {DNNL_ARG_DST, Place::Output(0), descriptor.dst_desc()}};
    if (op.has_input(in_.bias))
      arguments.push_back({DNNL_ARG_BIAS, Place::Input(in_.bias), descriptor.bias_desc()});
    AppendScalesAndZeros(op, plan, &arguments);
    post_ops.AppendArguments(&arguments);
    plan->Add<Descriptor, dnnl::convolution_forward>(descriptor, std::move(arguments));
    return OkStatus();
  }

  size_t packed_bytes() const override { return weights_ == nullptr ? 0 : weights_->bytes(); }
  int residual_input() const override {
    return op().has_input(in_.residual) && op().output(0).dtype == DType::kF32
               ? static_cast<int>(in_.residual)
               : -1;
  }

 private:
  memory::desc PlainWeights(const OpView& op, memory::data_type elements) const {
    return onednn::Describe(GroupedWeights(op.input(in_.b).dims, op.Int("group")), Layout::kPlain,
                            elements);
  }

  PostOps PostOpsOf(const OpView& op, bool shared_residual) const {
    PostOps post_ops;
    if (op.has_input(in_.residual)) {
      if (shared_residual) post_ops.AddResult();
      else
        post_ops.Add(Place::Input(in_.residual),
                     onednn::Describe(op.input(in_.residual), input_layout(in_.residual)));
    }
    if (op.domain() == "msrt") post_ops.Activation(op);
    return post_ops;
  }

  Result<Descriptor> Describe(const OpView& op, const PostOps& post_ops) const {
    MSRT_ASSIGN_OR_RETURN(const std::optional<int32_t> zero, WeightZero(op));
    if (zero != 0) return Unsupported("oneDNN's convolutions have no zero point for weights");
    MSRT_ASSIGN_OR_RETURN(const ConvolutionSteps steps,
                          ConvolutionStepsOf(op, op.input(in_.a).dims, op.input(in_.b).dims));
    const memory::desc src = onednn::Describe(op.input(in_.a), input_layout(in_.a));
    const memory::desc dst = onednn::Describe(op.output(0), output_layout(0));
    const memory::desc bias =
        op.has_input(in_.bias) ? DescribePlain(op.input(in_.bias).dims) : memory::desc();
    dnnl::primitive_attr attr = UserScratchpad(post_ops.ops());
    // Output channels are dim 0 of the weights, or dims 0 and 1 where there are groups.
    MSRT_RETURN_IF_ERROR(SetScalesAndZeros(op, op.Int("group") > 1 ? 3 : 1, &attr));
    const auto make = [&](const memory::desc& weights) {
      return Descriptor(Engine(), dnnl::prop_kind::forward_inference,
                        dnnl::algorithm::convolution_direct, src, weights, bias, dst, steps.strides,
                        steps.dilations, steps.begin, steps.end, attr, true);
    };
    const memory::desc any(PlainWeights(op, memory::data_type::s8).get_dims(),
                           memory::data_type::s8, memory::format_tag::any);
    const Descriptor descriptor = DescribeWithWeights(make, packed_, any);
    if (descriptor.get(true) == nullptr || IsNaive(descriptor))
      return Unsupported("oneDNN has no convolution of bytes for these shapes");
    if (SumsBytesExactly() && !SumsBytesExactly(descriptor))
      return Unsupported("oneDNN's convolution for these shapes saturates");
    return descriptor;
  }

  const IntegerInputs& in_;
  std::unique_ptr<PackedWeights> weights_;  // null where W is no constant
  memory::desc packed_;                     // empty until Pack
};

Result<std::shared_ptr<const Recipe>> CompileIntegerConvolution(const NodeInfo& node,
                                                                const Candidate& candidate,
                                                                const CompileContext& context) {
  auto recipe = std::make_shared<IntegerConvolutionRecipe>(node, candidate, context);
  const Status status = recipe->Pack(*node.typical);
  // Without an implementation at the typical shapes there may still be one at others.
  if (!status.ok() && status.code() != Code::kUnsupported) return status;
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr DTypeSet kTypes = kLibraryIntegers | DTypeSet{DType::kF32};
constexpr Rule kIntegerConvolutionRules[] = {
    {"", "ConvInteger", QueryIntegerConvolution, CompileIntegerConvolution, false, kTypes},
    {"msrt", "QuantizedConv", QueryIntegerConvolution, CompileIntegerConvolution, false, kTypes},
};

}  // namespace

std::span<const Rule> IntegerConvolutionRules() { return kIntegerConvolutionRules; }

}  // namespace msrt::onednn
