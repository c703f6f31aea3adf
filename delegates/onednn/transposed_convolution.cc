// ConvTranspose on the deconvolution primitive, which is several times faster channels-last than in
// blocks.
#include <algorithm>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/panel_convolution.h"
#include "delegates/onednn/post_ops.h"
#include "delegates/onednn/recipe.h"
#include "delegates/onednn/weights.h"
#include "ops/window.h"

namespace msrt::onednn {
namespace {

using Descriptor = dnnl::deconvolution_forward::primitive_desc;
constexpr size_t kX = 0, kW = 1, kB = 2;

// A later part of a sum over input channels adds no bias.
bool HasBias(const OpView& op) { return op.has_input(kB) && op.Int("partial") == 0; }

// Rounding an operand reads all of it and writes half as many bytes.
constexpr double kRoundingTraffic = 1.5;

double Efficiency(Layout layout) {
  switch (layout) {
    case Layout::kPlain:
      return 0.15;
    case Layout::kChannelsLast:
      return 0.85;
    case Layout::kBlocked8:
    case Layout::kBlocked16:
      return 0.35;
  }
  return 1;
}

// Returns how much is cut off the end of an axis of the full result; negative where output_padding
// or output_shape adds to it.
int64_t CutAtEnd(const WindowAxis& axis) {
  return (axis.in - 1) * axis.stride + axis.span() - axis.pad_begin - axis.out;
}

Result<Windows> WindowsOfNode(const OpView& op) {
  return TransposedWindowsOf(op, op.input(kX).dims,
                             std::span<const int64_t>(op.input(kW).dims).subspan(2));
}

std::string QueryTransposed(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  const auto windows = WindowsOfNode(*node.typical);
  if (!windows.ok()) return windows.status().message();
  for (int i = 0; i < windows->rank; ++i) {
    const WindowAxis& axis = windows->axis[static_cast<size_t>(i)];
    if (CutAtEnd(axis) <= -axis.stride) return "a result that extends a stride beyond the last tap";
  }
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast, BlockedLayout()}) {
    if (!Admits(op.input(kX), layout) || !Admits(op.output(0), layout)) continue;
    if (BlockOf(layout) != 1 && op.Int("group") != 1) continue;
    Candidate c = MakeCandidate(node, layout, layout,
                                Roofline(node.machine, node.flops, Efficiency(layout), node.bytes),
                                layout == Layout::kPlain ? "gemm" : "jit");
    c.input_layouts[kW] = Layout::kPlain;
    candidates->push_back(c);
    if (layout != Layout::kChannelsLast || !HasBf16() || op.Int("group") != 1) continue;
    const auto rounded = static_cast<double>(node.typical->input(kX).bytes());
    c.seconds = Roofline(node.machine, node.flops, kBf16Speedup * Efficiency(layout), node.bytes) +
                Roofline(node.machine, 0, 1, kRoundingTraffic * rounded);
    c.algorithm = "jit bf16";
    c.reduced = true;
    candidates->push_back(std::move(c));
  }
  return {};
}

// W is [inputs, outputs of a group, kernel...] and the library's weights are [groups,] outputs,
// inputs of a group, kernel...
memory::desc PlainWeights(const OpView& op) {
  const Dims& w = op.input(kW).dims;
  const int64_t groups = op.Int("group"), inputs = w[0] / groups;
  const Dims w_strides = RowMajorStrides(w);
  Dims dims{w[1], inputs}, strides{w_strides[1], w_strides[0]};
  for (int i = 2; i < w.rank(); ++i) dims.push_back(w[i]), strides.push_back(w_strides[i]);
  if (groups > 1) dims.insert(0, groups), strides.insert(0, inputs * w_strides[0]);
  return memory::desc(ToDnnl(dims), memory::data_type::f32, ToDnnl(strides));
}

class TransposedRecipe final : public Recipe {
 public:
  TransposedRecipe(const NodeInfo& node, const Candidate& candidate, const CompileContext& context)
      : Recipe(node, candidate),
        reduced_(candidate.reduced),
        typical_elements_(node.typical->output(0).elements()),
        weights_(node, kW, PlainWeights(*node.typical), context) {}

  Status Pack(const OpView& typical) {
    if (!weights_.packs() || typical.input(kX).elements() == 0 || typical.output(0).elements() == 0)
      return OkStatus();
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor, Describe(typical));
    packed_ = descriptor.weights_desc();
    return weights_.Prepare(packed_);
  }

  Status Build(const OpView& op, bool, Plan* plan) const override {
    MSRT_ASSIGN_OR_RETURN(const Descriptor descriptor, Describe(op));
    const memory::desc wanted = descriptor.weights_desc();
    if (!(wanted == packed_) && TakesPackedPanels(op)) {
      MSRT_ASSIGN_OR_RETURN(const bool added, AddPanels(op, plan));
      if (added) return OkStatus();
    }
    MSRT_ASSIGN_OR_RETURN(const Place weights, weights_.In(PlainWeights(op), wanted, plan));
    const Place source =
        plan->Converted(Place::Input(kX), onednn::Describe(op.input(kX), input_layout(kX)),
                        descriptor.src_desc());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, source, descriptor.src_desc()},
                                    {DNNL_ARG_WEIGHTS, weights, wanted},
                                    {DNNL_ARG_DST, Place::Output(0), descriptor.dst_desc()}};
    if (HasBias(op)) arguments.push_back({DNNL_ARG_BIAS, Place::Input(kB), descriptor.bias_desc()});
    plan->Add<Descriptor, dnnl::deconvolution_forward>(descriptor, std::move(arguments));
    return OkStatus();
  }

  size_t packed_bytes() const override { return weights_.bytes(); }

 private:
  // As in convolution.cc.
  bool TakesPackedPanels(const OpView& op) const {
    return !reduced_ && packed_.get_ndims() > 0 && output_layout(0) == Layout::kChannelsLast &&
           input_layout(kX) == Layout::kChannelsLast &&
           (this->op().input(kX).concrete() || op.output(0).elements() <= typical_elements_);
  }

  // Returns false if the packed form does not consist of panels.
  Result<bool> AddPanels(const OpView& op, Plan* plan) const {
    MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOfNode(op));
    const auto panels = PanelConvolution::Make(op, windows, /*transposed=*/true, packed_);
    if (panels == nullptr) return false;
    MSRT_ASSIGN_OR_RETURN(const Place weights, weights_.In(PlainWeights(op), packed_, plan));
    plan->AddLoop([panels, weights, bias = HasBias(op)](const LoopArgs& args) {
      return panels->Run({.x = args.inputs[kX].As<float>(),
                          .weights = static_cast<const float*>(args.At(weights)),
                          .bias = bias ? args.inputs[kB].As<float>() : nullptr,
                          .residual = nullptr,
                          .y = args.outputs[0].As<float>()},
                         args.parallel);
    });
    return true;
  }

  Result<Descriptor> Describe(const OpView& op) const {
    if (!reduced_) return Describe(op, memory::data_type::f32);
    auto reduced = Describe(op, memory::data_type::bf16);
    return reduced.ok() && !IsNaive(*reduced) ? std::move(reduced)
                                              : Describe(op, memory::data_type::f32);
  }

  // With source and weights of this type; sums and everything else are f32.
  Result<Descriptor> Describe(const OpView& op, memory::data_type factors) const {
    MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOfNode(op));
    memory::dims strides, dilations, begin, end;
    for (int i = 0; i < windows.rank; ++i) {
      const WindowAxis& axis = windows.axis[static_cast<size_t>(i)];
      strides.push_back(axis.stride), dilations.push_back(axis.dilation - 1),
          begin.push_back(axis.pad_begin);
      // Less than a stride beyond the last tap needs no words: the library counts the windows of the
      // result and rounds down.
      end.push_back(std::max<int64_t>(CutAtEnd(axis), 0));
    }
    const memory::desc given = onednn::Describe(op.input(kX), input_layout(kX)),
                       src = factors == memory::data_type::bf16 ? InBf16(given) : given,
                       dst = onednn::Describe(op.output(0), output_layout(0));
    const memory::desc bias = HasBias(op) ? DescribePlain(op.input(kB).dims) : memory::desc();
    const dnnl::primitive_attr attr = UserScratchpad();
    const auto make = [&](const memory::desc& weights) {
      return Descriptor(Engine(), dnnl::prop_kind::forward_inference,
                        dnnl::algorithm::deconvolution_direct, src, weights, bias, dst, strides,
                        dilations, begin, end, attr, true);
    };
    const memory::desc any(PlainWeights(op).get_dims(), factors, memory::format_tag::any);
    const bool is_packed = packed_.get_ndims() > 0 && packed_.get_data_type() == factors;
    const Descriptor descriptor =
        DescribeWithWeights(make, is_packed ? packed_ : memory::desc(), any);
    if (descriptor.get(true) == nullptr)
      return Unsupported("oneDNN has no transposed convolution for these shapes");
    return descriptor;
  }

  const bool reduced_;              // rounds source and weights to bf16, where the library has it
  const int64_t typical_elements_;  // of the output
  Weights weights_;
  memory::desc packed_;  // empty until Pack
};

Result<std::shared_ptr<const Recipe>> CompileTransposed(const NodeInfo& node,
                                                        const Candidate& candidate,
                                                        const CompileContext& context) {
  auto recipe = std::make_shared<TransposedRecipe>(node, candidate, context);
  const Status status = recipe->Pack(*node.typical);
  if (!status.ok() && status.code() != Code::kUnsupported) return status;
  return std::shared_ptr<const Recipe>(std::move(recipe));
}

constexpr std::string_view kLocalAttrs[] = {"partial", "piece_offsets", "piece_outputs"};
constexpr Rule kTransposedRules[] = {
    {"", "ConvTranspose", QueryTransposed, CompileTransposed, false, {DType::kF32}, kLocalAttrs}};

}  // namespace

std::span<const Rule> TransposedConvolutionRules() { return kTransposedRules; }

}  // namespace msrt::onednn
