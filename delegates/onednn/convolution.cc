// Conv and msrt.FusedConv. Channels-last is the fastest layout for nearly every convolution on AVX2 (brgemm and jit 1x1 kernels),
// blocks of 8 channels come next; plain input with blocked output is for the first layer, plain throughout costs an im2col.
#include <algorithm>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/post_ops.h"
#include "delegates/onednn/recipe.h"
#include "delegates/onednn/weights.h"
#include "ops/window.h"

namespace msrt::onednn {
namespace {

using Descriptor = dnnl::convolution_forward::primitive_desc;
constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;

// ---- rules ---------------------------------------------------------------------------------------------------------------------

struct Channels {
  int64_t groups, inputs, outputs;
  bool depthwise() const { return groups > 1 && groups == inputs && groups == outputs; }
  // Typical dims are guesses and need not divide.
  int64_t group_inputs() const { return std::max<int64_t>(1, inputs / groups); }
  int64_t group_outputs() const { return std::max<int64_t>(1, outputs / groups); }
};

// The share of the peak that the best implementation of a layout reaches.
double Efficiency(const OpView& op, const Channels& c, Layout in, Layout out) {
  const int64_t taps = op.input(kW).dims.product(2, op.input(kW).rank());
  const int64_t pixels = op.output(0).dims.product(2, op.output(0).rank());
  if (c.depthwise()) {
    if (out == Layout::kPlain) return 0.02;
    if (out == Layout::kChannelsLast) return 0.57;
    return pixels >= 28 * 28 ? 0.6 : 0.48;
  }
  if (c.groups > 1 && c.group_inputs() < 8) return 0.1;  // im2col with tiny products, in every layout
  // Vectors of 8 output channels, whether they are all used or not.
  const double used = static_cast<double>(c.group_outputs()) / static_cast<double>((c.group_outputs() + 7) / 8 * 8);
  // The product behind an im2col has the pixels as columns, and with a few of them it starves: a quarter of the peak at four.
  const double columns = static_cast<double>(pixels) / (static_cast<double>(pixels) + 6);
  if (out == Layout::kPlain) return (taps == 1 ? 0.75 : 0.62 * used) * columns;
  if (in == Layout::kPlain) return 0.95 * used;
  if (out == Layout::kChannelsLast) return 0.97 * used;
  return (taps == 1 ? 0.96 : 0.91) * used;
}

void Offer(const NodeInfo& node, const Channels& c, Layout in, Layout out, std::string_view algorithm, std::vector<Candidate>* candidates) {
  const double activation =
      FlopsIn(EltwiseNanoseconds(node.op->String("activation")) * static_cast<double>(node.typical->output(0).elements()));
  const double efficiency = Efficiency(*node.typical, c, in, out);
  const double seconds = Roofline(node.machine, node.flops + activation * efficiency, efficiency, node.bytes);
  Candidate candidate = MakeCandidate(node, in, out, seconds, algorithm);
  candidate.input_layouts[kW] = Layout::kPlain;
  // Weights that are computed are put in order on every run, by one core.
  constexpr double kPartOfBandwidth = 0.5;
  if (node.op->constant(kW) == nullptr) {
    candidate.seconds += static_cast<double>(2 * node.typical->input(kW).bytes()) / (kPartOfBandwidth * node.machine.bytes_per_second);
  }
  if (node.op->has_input(kZ)) {
    if (HasLayout(node, kZ)) candidate.input_layouts[kZ] = out;
    if (candidate.input_layouts[kZ] == out && node.op->constant(kZ) == nullptr) candidate.in_place = {{uint32_t{kZ}, 0u}};
  }
  candidates->push_back(std::move(candidate));
}

std::string QueryConvolution(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (std::string reason = ActivationRefusal(op); !reason.empty()) return reason;
  const Channels c{op.Int("group"), node.typical->input(kX).dims[1], node.typical->output(0).dims[1]};
  const bool residual_is_plain = op.has_input(kZ) && !HasLayout(node, kZ);
  Offer(node, c, Layout::kPlain, Layout::kPlain, "gemm", candidates);
  if (residual_is_plain) return {};
  Offer(node, c, Layout::kChannelsLast, Layout::kChannelsLast, c.depthwise() ? "jit depthwise" : "jit", candidates);
  const bool out_blocked = Admits(op.output(0), Layout::kBlocked8);
  const bool groups_blocked = c.groups == 1 || c.depthwise() || (c.group_inputs() % 8 == 0 && c.group_outputs() % 8 == 0);
  if (out_blocked && groups_blocked && Admits(op.input(kX), Layout::kBlocked8)) {
    Offer(node, c, Layout::kBlocked8, Layout::kBlocked8, c.depthwise() ? "jit depthwise" : "jit", candidates);
  }
  if (out_blocked && c.groups == 1 && op.input(kX).dims[1] > 0 && op.input(kX).dims[1] <= 3) {
    Offer(node, c, Layout::kPlain, Layout::kBlocked8, "jit first layer", candidates);
  }
  return {};
}

// ---- descriptors -----------------------------------------------------------------------------------------------------------------

// Weights as the library names them: with a dim for groups where there are several.
memory::desc PlainWeights(const OpView& op) {
  Dims dims = op.input(kW).dims;
  const int64_t groups = op.Int("group");
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(0, groups);
  }
  return DescribePlain(dims);
}

// The library lists brgemm kernels first; on AVX2 the older ones are faster for 1x1 and for depthwise (by 2 to 10 and by 15 to 25
// percent), unless output channels leave a tail.
Descriptor PreferOlderKernels(const Descriptor& first, int64_t outputs) {
  const std::string_view name = first.impl_info_str();
  const bool pointwise = name == "brgconv_1x1:avx2", depthwise = name == "brdgmm_dw:avx2";
  if (!depthwise && !(pointwise && outputs % 8 == 0)) return first;
  Descriptor next(first.get());  // a copy: next_impl would move `first` on too
  while (next.next_impl()) {
    if (std::string_view(next.impl_info_str()) == (pointwise ? "jit_1x1:avx2" : "jit_dw:avx2")) return next;
  }
  return first;
}

class ConvolutionRecipe final : public Recipe {
 public:
  ConvolutionRecipe(const NodeInfo& node, const Candidate& candidate, const CompileContext& context) : Recipe(node, candidate) {
    const ConstTensor* w = op().constant(kW);
    if (w != nullptr) weights_ = std::make_unique<PackedWeights>(w->bytes.data(), PlainWeights(*node.typical), context);
  }

  // Chooses the form of the weights from the typical shapes and packs them.
  Status Pack(const OpView& typical) {
    if (weights_ == nullptr || typical.input(kX).elements() == 0 || typical.output(0).elements() == 0) return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor, Describe(typical, PostOpsOf(typical, output_layout(0) == Layout::kPlain)));
    packed_ = descriptor.weights_desc();
    return weights_->Get(packed_).status();
  }

  Status Build(const OpView& op, bool shared_residual, Plan* plan) const override {
    // The im2col of plain tensors adds only what lies in the result, so the residual is copied there first; elsewhere adding it from
    // where it lies saves that pass.
    if (op.has_input(kZ) && !shared_residual && output_layout(0) == Layout::kPlain) {
      const memory::desc dst = onednn::Describe(op.output(0), Layout::kPlain);
      plan->AddReorder(Place::Input(kZ), dst, Place::Output(0), dst);
      shared_residual = true;
    }
    const PostOps post_ops = PostOpsOf(op, shared_residual);
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor, Describe(op, post_ops));
    const memory::desc wanted = descriptor.weights_desc();
    MSRT_ASSIGN_OR_RETURN(const Place weights, PlaceWeights(weights_.get(), kW, PlainWeights(op), wanted, plan));
    std::vector<Argument> arguments{{DNNL_ARG_SRC, Place::Input(kX), descriptor.src_desc()},
                                    {DNNL_ARG_WEIGHTS, weights, wanted},
                                    {DNNL_ARG_DST, Place::Output(0), descriptor.dst_desc()}};
    if (op.has_input(kB)) arguments.push_back({DNNL_ARG_BIAS, Place::Input(kB), descriptor.bias_desc()});
    post_ops.AppendArguments(&arguments);
    plan->Add<Descriptor, dnnl::convolution_forward>(descriptor, std::move(arguments));
    return OkStatus();
  }

  size_t packed_bytes() const override { return weights_ == nullptr ? 0 : weights_->bytes(); }
  int residual_input() const override { return op().has_input(kZ) ? int{kZ} : -1; }

 private:
  PostOps PostOpsOf(const OpView& op, bool shared_residual) const {
    PostOps post_ops;
    if (op.has_input(kZ)) {
      if (shared_residual) post_ops.AddResult();
      else post_ops.Add(Place::Input(kZ), onednn::Describe(op.input(kZ), input_layout(kZ)));
    }
    post_ops.Activation(op);
    return post_ops;
  }

  Result<Descriptor> Describe(const OpView& op, const PostOps& post_ops) const {
    const Dims& w = op.input(kW).dims;
    MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(op, op.input(kX).dims, std::span<const int64_t>(w).subspan(2)));
    memory::dims strides, dilations, begin, end;
    for (int i = 0; i < windows.rank; ++i) {
      const WindowAxis& axis = windows.axis[static_cast<size_t>(i)];
      strides.push_back(axis.stride), dilations.push_back(axis.dilation - 1);
      begin.push_back(axis.pad_begin), end.push_back(axis.pad_end);
    }
    const memory::desc src = onednn::Describe(op.input(kX), input_layout(kX)), dst = onednn::Describe(op.output(0), output_layout(0));
    const memory::desc bias = op.has_input(kB) ? DescribePlain(op.input(kB).dims) : memory::desc();
    const dnnl::primitive_attr attr = UserScratchpad(post_ops.ops());
    const auto make = [&](const memory::desc& weights) {
      return Descriptor(Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, src, weights, bias, dst, strides,
                        dilations, begin, end, attr, true);
    };
    const memory::desc any(PlainWeights(op).get_dims(), memory::data_type::f32, memory::format_tag::any);
    const Descriptor descriptor = DescribeWithWeights(make, packed_, any);
    if (descriptor.get(true) == nullptr) return Unsupported("oneDNN has no convolution for these shapes");
    return PreferOlderKernels(descriptor, w[0]);
  }

  std::unique_ptr<PackedWeights> weights_;  // null where W is no constant
  memory::desc packed_;                     // empty until Pack
};

Result<std::shared_ptr<const Recipe>> CompileConvolution(const NodeInfo& node, const Candidate& candidate, const CompileContext& context) {
  auto recipe = std::make_shared<ConvolutionRecipe>(node, candidate, context);
  const Status status = recipe->Pack(*node.typical);
  // Without an implementation at the typical shapes there may still be one at others.
  if (!status.ok() && status.code() != Code::kUnsupported) return status;
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr Rule kConvolutionRules[] = {
    {"", "Conv", QueryConvolution, CompileConvolution},
    {"msrt", "FusedConv", QueryConvolution, CompileConvolution},
};

}  // namespace

std::span<const Rule> ConvolutionRules() { return kConvolutionRules; }

}  // namespace msrt::onednn
