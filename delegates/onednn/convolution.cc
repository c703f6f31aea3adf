// Conv and msrt.FusedConv. Channels-last is the fastest layout for nearly every convolution on AVX2
// (brgemm and jit 1x1 kernels) and AVX-512, blocks of 8 or 16 channels come next; plain input with
// blocked output is for the first layer, plain throughout costs an im2col.
#include <algorithm>

#include "delegates/onednn/convolution_steps.h"
#include "delegates/onednn/cost.h"
#include "delegates/onednn/panel_convolution.h"
#include "delegates/onednn/post_ops.h"
#include "delegates/onednn/recipe.h"
#include "delegates/onednn/weights.h"

namespace msrt::onednn {
namespace {

using Descriptor = dnnl::convolution_forward::primitive_desc;
constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;

// A later part of a sum over input channels adds neither bias nor residual.
bool HasBias(const OpView& op) { return op.has_input(kB) && op.Int("partial") == 0; }
bool HasResidual(const OpView& op) { return op.has_input(kZ) && op.Int("partial") == 0; }

// ---- rules --------------------------------------------------------------------------------------

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
    if (out == Layout::kBlocked16) return 0.57;
    return pixels >= 28 * 28 ? 0.6 : 0.48;
  }
  // An im2col with tiny products, but for the kernels of AVX-512.
  if (c.groups > 1 && c.group_inputs() < 8)
    return out == Layout::kChannelsLast && HasWideVectors() ? 0.35 : 0.1;
  // Vectors of 8 output channels, whether they are all used or not; blocks of 16 are full.
  const double used =
      static_cast<double>(c.group_outputs()) / static_cast<double>((c.group_outputs() + 7) / 8 * 8);
  // The product behind an im2col has the pixels as columns, and with a few of them it starves: a
  // quarter of the peak at four.
  const double columns = static_cast<double>(pixels) / (static_cast<double>(pixels) + 6);
  if (out == Layout::kPlain) return (taps == 1 ? 0.75 : 0.62 * used) * columns;
  if (in == Layout::kPlain) return 0.95 * used;
  if (out == Layout::kChannelsLast) return 0.97 * used;
  return (taps == 1 ? 0.96 : 0.91) * used;
}

void Offer(const NodeInfo& node, const Channels& c, Layout in, Layout out,
           std::string_view algorithm, std::vector<Candidate>* candidates, bool reduced = false) {
  const double activation = FlopsIn(EltwiseNanoseconds(node.op->String("activation")) *
                                    static_cast<double>(node.typical->output(0).elements()));
  const double efficiency = Efficiency(*node.typical, c, in, out) * (reduced ? kBf16Speedup : 1);
  double seconds =
      Roofline(node.machine, node.flops + activation * efficiency, efficiency, node.bytes);
  if (reduced)
    seconds +=
        Roofline(node.machine, 0, 1,
                 1.5 * static_cast<double>(node.typical->input(kX).bytes()));  // rounds its input
  Candidate candidate = MakeCandidate(node, in, out, seconds, algorithm);
  candidate.reduced = reduced;
  candidate.input_layouts[kW] = Layout::kPlain;
  // Weights that are computed are put in order on every run, by one core.
  constexpr double kPartOfBandwidth = 0.5;
  if (!IsPacked(node, kW)) {
    candidate.seconds += static_cast<double>(2 * node.typical->input(kW).bytes()) /
                         (kPartOfBandwidth * node.machine.bytes_per_second);
  }
  if (node.op->has_input(kZ)) {
    if (HasLayout(node, kZ)) candidate.input_layouts[kZ] = out;
    if (candidate.input_layouts[kZ] == out && node.op->constant(kZ) == nullptr)
      candidate.in_place = {{uint32_t{kZ}, 0u}};
  }
  candidates->push_back(std::move(candidate));
}

memory::desc PlainWeights(const OpView& op) {
  return DescribePlain(GroupedWeights(op.input(kW).dims, op.Int("group")));
}

// Whether the library has a kernel for these layouts at the typical shapes, rather than its loops
// of last resort. Asking takes about 0.1 ms, so only convolutions are asked about for which it may
// have none: the first layer (the library has none with AVX-512 for 11x11 with stride 4), groups,
// dilated, large or with another number of spatial axes than two.
bool HasKernel(const NodeInfo& node, const Channels& c, Layout in, Layout out) {
  const OpView& op = *node.typical;
  const Dims& w = op.input(kW).dims;
  if (op.input(kX).elements() == 0 || op.output(0).elements() == 0) return true;
  const auto steps = ConvolutionStepsOf(op, op.input(kX).dims, w);
  if (!steps.ok()) return true;
  const bool dilated = std::any_of(steps->dilations.begin(), steps->dilations.end(),
                                   [](int64_t d) { return d > 0; });
  const bool large = std::any_of(w.begin() + 2, w.end(), [](int64_t k) { return k > 7; });
  const bool grouped = c.groups > 1 && !c.depthwise();
  if (in == out && w.rank() == 4 && !dilated && !large && !grouped) return true;
  const memory::desc any(PlainWeights(op).get_dims(), memory::data_type::f32,
                         memory::format_tag::any);
  const Descriptor descriptor(
      Engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      onednn::Describe(op.input(kX), in), any, memory::desc(), onednn::Describe(op.output(0), out),
      steps->strides, steps->dilations, steps->begin, steps->end, UserScratchpad(), true);
  return descriptor.get(true) != nullptr && !IsNaive(descriptor);
}

std::string QueryConvolution(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (std::string reason = ActivationRefusal(op); !reason.empty()) return reason;
  const Channels c{op.Int("group"), node.typical->input(kX).dims[1],
                   node.typical->output(0).dims[1]};
  const bool residual_is_plain = op.has_input(kZ) && !HasLayout(node, kZ);
  Offer(node, c, Layout::kPlain, Layout::kPlain, "gemm", candidates);
  if (residual_is_plain) return {};
  const std::string_view algorithm = c.depthwise() ? "jit depthwise" : "jit";
  if (HasKernel(node, c, Layout::kChannelsLast, Layout::kChannelsLast)) {
    Offer(node, c, Layout::kChannelsLast, Layout::kChannelsLast, algorithm, candidates);
    // Depthwise ones have nothing to gain: rounding the input takes longer than they do.
    if (HasBf16() && c.groups == 1) {
      Offer(node, c, Layout::kChannelsLast, Layout::kChannelsLast, "jit bf16", candidates,
            /*reduced=*/true);
    }
  }
  const Layout blocked = BlockedLayout();
  const int64_t block = BlockOf(blocked);
  if (!Admits(op.output(0), blocked)) return {};
  const bool groups_blocked = c.groups == 1 || c.depthwise() ||
                              (c.group_inputs() % block == 0 && c.group_outputs() % block == 0);
  if (groups_blocked && Admits(op.input(kX), blocked) && HasKernel(node, c, blocked, blocked))
    Offer(node, c, blocked, blocked, algorithm, candidates);
  const int64_t channels = op.input(kX).dims[1];
  if (c.groups == 1 && channels > 0 && channels <= 3 &&
      HasKernel(node, c, Layout::kPlain, blocked)) {
    Offer(node, c, Layout::kPlain, blocked, "jit first layer", candidates);
  }
  return {};
}

// ---- descriptors --------------------------------------------------------------------------------

// The library lists brgemm kernels first. The older ones are faster for depthwise convolutions (on
// AVX2 by 15 to 25 percent, on AVX-512 by 10 to 40) and, on AVX2 and unless output channels leave a
// tail, for 1x1 (by 2 to 10). On AVX-512 brgemm is faster for 1x1, by up to 12, but the library
// keeps the code of each for ever, and there is one for each size: open dims take the older ones
// there too.
std::string_view PreferredKernel(std::string_view first, int64_t outputs, bool open_dims) {
  if (first == "brdgmm_dw:avx512_core") return "jit_dw:avx512_core";
  if (first == "brdgmm_dw:avx2") return "jit_dw:avx2";
  if (first == "brgconv_1x1:avx512_core" && open_dims) return "jit_1x1:avx512_core";
  return first == "brgconv_1x1:avx2" && (outputs % 8 == 0 || open_dims) ? "jit_1x1:avx2" : first;
}
// `first`, or the one that is preferred to it among those that `make` begins to list; a copy of a
// descriptor would list nothing.
template <typename Make>
Descriptor PreferOlderKernels(const Descriptor& first, int64_t outputs, bool open_dims,
                              const Make& make) {
  const std::string_view name = first.impl_info_str(),
                         preferred = PreferredKernel(name, outputs, open_dims);
  if (preferred == name) return first;
  Descriptor next = make();
  do {
    if (std::string_view(next.impl_info_str()) == preferred) return next;
  } while (next.next_impl());
  return first;
}

class ConvolutionRecipe final : public Recipe {
 public:
  ConvolutionRecipe(const NodeInfo& node, const Candidate& candidate, const CompileContext& context)
      : Recipe(node, candidate),
        reduced_(candidate.reduced),
        typical_elements_(node.typical->output(0).elements()),
        weights_(node, kW, PlainWeights(*node.typical), context) {}

  // Chooses the form of the weights from the typical shapes and packs them.
  Status Pack(const OpView& typical) {
    if (!weights_.packs() || typical.input(kX).elements() == 0 || typical.output(0).elements() == 0)
      return OkStatus();
    MSRT_ASSIGN_OR_RETURN(
        const Descriptor descriptor,
        Describe(typical, PostOpsOf(typical, output_layout(0) == Layout::kPlain)));
    packed_ = descriptor.weights_desc();
    return weights_.Prepare(packed_);
  }

  Status Build(const OpView& op, bool shared_residual, Plan* plan) const override {
    // The im2col of plain tensors adds only what lies in the result, so the residual is copied
    // there first; elsewhere adding it from where it lies saves that pass.
    if (HasResidual(op) && !shared_residual && output_layout(0) == Layout::kPlain) {
      const memory::desc dst = onednn::Describe(op.output(0), Layout::kPlain);
      plan->AddReorder(Place::Input(kZ), dst, Place::Output(0), dst);
      shared_residual = true;
    }
    const PostOps post_ops = PostOpsOf(op, shared_residual);
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor, Describe(op, post_ops));
    const memory::desc wanted = descriptor.weights_desc();
    if (!(wanted == packed_) && TakesPackedPanels(op)) {
      MSRT_ASSIGN_OR_RETURN(const bool added, AddPanels(op, shared_residual, plan));
      if (added) return OkStatus();
    }
    MSRT_ASSIGN_OR_RETURN(const Place weights, weights_.In(PlainWeights(op), wanted, plan));
    const Place src = plan->Converted(
        Place::Input(kX), onednn::Describe(op.input(kX), input_layout(kX)), descriptor.src_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, src, descriptor.src_desc()},
                                    {DNNL_ARG_WEIGHTS, weights, wanted},
                                    {DNNL_ARG_DST, Place::Output(0), descriptor.dst_desc()}};
    if (HasBias(op)) arguments.push_back({DNNL_ARG_BIAS, Place::Input(kB), descriptor.bias_desc()});
    post_ops.AppendArguments(&arguments);
    plan->Add<Descriptor, dnnl::convolution_forward>(descriptor, std::move(arguments));
    return OkStatus();
  }

  size_t packed_bytes() const override { return weights_.bytes(); }
  int residual_input() const override { return op().has_input(kZ) ? int{kZ} : -1; }

 private:
  // Whether the weights that are packed for the typical shapes serve these too, where the library
  // wants others. A larger output is worth weights of its own.
  bool TakesPackedPanels(const OpView& op) const {
    return packed_.get_ndims() > 0 && output_layout(0) == Layout::kChannelsLast &&
           input_layout(kX) == Layout::kChannelsLast &&
           (this->op().input(kX).concrete() || op.output(0).elements() <= typical_elements_) &&
           (!HasResidual(op) ||
            (input_layout(kZ) == Layout::kChannelsLast && op.input(kZ).dims == op.output(0).dims));
  }

  // Returns false if the packed form does not consist of panels.
  Result<bool> AddPanels(const OpView& op, bool shared_residual, Plan* plan) const {
    const Dims& w = op.input(kW).dims;
    MSRT_ASSIGN_OR_RETURN(const Windows windows,
                          WindowsOf(op, op.input(kX).dims, std::span<const int64_t>(w).subspan(2)));
    const auto panels = PanelConvolution::Make(op, windows, /*transposed=*/false, packed_);
    if (panels == nullptr) return false;
    MSRT_ASSIGN_OR_RETURN(const Place weights, weights_.In(PlainWeights(op), packed_, plan));
    const bool bias = HasBias(op), residual = HasResidual(op);
    plan->AddLoop([=](const LoopArgs& args) {
      float* const y = args.outputs[0].As<float>();
      const float* z = shared_residual ? y : residual ? args.inputs[kZ].As<float>() : nullptr;
      return panels->Run({.x = args.inputs[kX].As<float>(),
                          .weights = static_cast<const float*>(args.At(weights)),
                          .bias = bias ? args.inputs[kB].As<float>() : nullptr,
                          .residual = residual ? z : nullptr,
                          .y = y},
                         args.parallel);
    });
    AddActivation(op, plan);
    return true;
  }
  void AddActivation(const OpView& op, Plan* plan) const {
    const std::string_view name = op.String("activation");
    if (name.empty()) return;
    const auto eltwise =
        FindEltwise(name, op.Float("activation_alpha"), op.Float("activation_beta"));
    const memory::desc dst = onednn::Describe(op.output(0), output_layout(0));
    const dnnl::eltwise_forward::primitive_desc descriptor(
        Engine(), dnnl::prop_kind::forward_inference, eltwise->algorithm, dst, dst, eltwise->alpha,
        eltwise->beta, UserScratchpad());
    plan->Add<dnnl::eltwise_forward::primitive_desc, dnnl::eltwise_forward>(
        descriptor, {{DNNL_ARG_SRC, Place::Output(0), dst}, {DNNL_ARG_DST, Place::Output(0), dst}});
  }

  PostOps PostOpsOf(const OpView& op, bool shared_residual) const {
    PostOps post_ops;
    if (HasResidual(op)) {
      if (shared_residual) post_ops.AddResult();
      else post_ops.Add(Place::Input(kZ), onednn::Describe(op.input(kZ), input_layout(kZ)));
    }
    post_ops.Activation(op);
    return post_ops;
  }

  Result<Descriptor> Describe(const OpView& op, const PostOps& post_ops) const {
    if (!reduced_) return Describe(op, post_ops, memory::data_type::f32);
    auto reduced = Describe(op, post_ops, memory::data_type::bf16);
    return reduced.ok() && !IsNaive(*reduced) ? std::move(reduced)
                                              : Describe(op, post_ops, memory::data_type::f32);
  }

  // With source and weights of this type; sums and everything else are f32.
  Result<Descriptor> Describe(const OpView& op, const PostOps& post_ops,
                              memory::data_type factors) const {
    const Dims& w = op.input(kW).dims;
    MSRT_ASSIGN_OR_RETURN(const ConvolutionSteps steps,
                          ConvolutionStepsOf(op, op.input(kX).dims, w));
    const bool bf16 = factors == memory::data_type::bf16;
    const memory::desc given = onednn::Describe(op.input(kX), input_layout(kX)),
                       src = bf16 ? InBf16(given) : given;
    const memory::desc dst = onednn::Describe(op.output(0), output_layout(0));
    const memory::desc bias = HasBias(op) ? DescribePlain(op.input(kB).dims) : memory::desc();
    const dnnl::primitive_attr attr = UserScratchpad(post_ops.ops());
    const auto make = [&](const memory::desc& weights) {
      return Descriptor(Engine(), dnnl::prop_kind::forward_inference,
                        dnnl::algorithm::convolution_direct, src, weights, bias, dst, steps.strides,
                        steps.dilations, steps.begin, steps.end, attr, true);
    };
    const memory::desc any(PlainWeights(op).get_dims(), factors, memory::format_tag::any);
    const bool is_packed = packed_.get_ndims() > 0 && packed_.get_data_type() == factors;
    const Descriptor descriptor =
        DescribeWithWeights(make, is_packed ? packed_ : memory::desc(), any);
    if (descriptor.get(true) == nullptr)
      return Unsupported("oneDNN has no convolution for these shapes");
    const bool as_packed = packed_.get_ndims() > 0 && descriptor.weights_desc() == packed_;
    return PreferOlderKernels(descriptor, w[0], !this->op().input(kX).concrete(),
                              [&] { return make(as_packed ? packed_ : any); });
  }

  const bool reduced_;              // rounds source and weights to bf16, where the library has it
  const int64_t typical_elements_;  // of the output
  Weights weights_;
  memory::desc packed_;  // empty until Pack
};

Result<std::shared_ptr<const Recipe>> CompileConvolution(const NodeInfo& node,
                                                         const Candidate& candidate,
                                                         const CompileContext& context) {
  auto recipe = std::make_shared<ConvolutionRecipe>(node, candidate, context);
  const Status status = recipe->Pack(*node.typical);
  // Without an implementation at the typical shapes there may still be one at others.
  if (!status.ok() && status.code() != Code::kUnsupported) return status;
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr std::string_view kLocalAttrs[] = {"partial"};
constexpr Rule kConvolutionRules[] = {
    {"", "Conv", QueryConvolution, CompileConvolution, false, {DType::kF32}, kLocalAttrs},
    {"msrt", "FusedConv", QueryConvolution, CompileConvolution, false, {DType::kF32}, kLocalAttrs},
};

}  // namespace

std::span<const Rule> ConvolutionRules() { return kConvolutionRules; }

}  // namespace msrt::onednn
