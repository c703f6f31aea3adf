#include "core/passes/fold_scale.h"

#include <algorithm>

#include "core/passes/channel_affine.h"
#include "core/passes/rewrite.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// A Mul, Div, Add or Sub with a constant.
struct Step {
  ValueId x = kNoValue;
  bool product = false, inverse = false;  // Div and Sub are inverse
  const ConstTensor* constant = nullptr;
};

std::optional<Step> StepOf(const Rewriter& r, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  const bool commutes = node.op == "Mul" || node.op == "Add";
  if (!commutes && node.op != "Div" && node.op != "Sub") return std::nullopt;
  const size_t c = commutes && r.constant(node.inputs[0]) != nullptr ? 0 : 1;
  const ConstTensor* constant = r.constant(node.inputs[c]);
  const ValueId x = node.inputs[1 - c];
  if (constant == nullptr || constant->dtype != DType::kF32 || r.constant(x) != nullptr ||
      !r.type(x).rank_known)
    return std::nullopt;
  if (constant->dims.rank() > r.type(x).rank()) return std::nullopt;
  return Step{x, node.op == "Mul" || node.op == "Div", !commutes, constant};
}

// Returns the factor or addend of each channel, for a tensor of this rank whose channels are dim
// `axis`; nullopt if the constant has another shape.
std::optional<std::vector<double>> PerChannel(const Step& step, int rank, int axis,
                                              int64_t channels) {
  const Dims& dims = step.constant->dims;
  const bool single = dims.elements() == 1;
  const int at = axis - (rank - dims.rank());
  if (!single && (at < 0 || dims[at] != channels || dims.elements() != channels))
    return std::nullopt;
  std::vector<double> numbers;
  for (float v : step.constant->As<float>())
    numbers.push_back(!step.inverse ? v : step.product ? 1.0 / v : -double{v});
  if (single) numbers.assign(static_cast<size_t>(channels), numbers[0]);
  return numbers;
}

ChannelAffine AffineOf(const Step& step, std::vector<double> numbers) {
  const std::vector<double> zeros(numbers.size(), 0), ones(numbers.size(), 1);
  return step.product ? ChannelAffine{std::move(numbers), zeros}
                      : ChannelAffine{ones, std::move(numbers)};
}

// A node with constant weights, and the position of its channels.
struct Layer {
  size_t n = 0;
  const ConstTensor* weights = nullptr;
  ValueId bias = kNoValue;
  int64_t groups = 1, inputs = 0, outputs = 0;
  WeightDim output_dim = WeightDim::kOuter;
  bool takes_bias = true;

  WeightDim input_dim() const {
    return output_dim == WeightDim::kOuter ? WeightDim::kInner : WeightDim::kOuter;
  }
};

std::optional<Layer> LayerOf(const Rewriter& r, size_t n) {
  if (!r.IsLive(n)) return std::nullopt;
  const Node& node = r.node(n);
  const bool conv = node.op == "Conv", transposed = node.op == "ConvTranspose",
             gemm = node.op == "Gemm", matmul = node.op == "MatMul";
  if (!conv && !transposed && !gemm && !matmul) return std::nullopt;
  const NodeView view(r.graph(), node);
  const OpView& op = view.op();
  Layer layer{.n = n, .weights = op.constant(1)};
  const ConstTensor* w = layer.weights;
  if (w == nullptr || w->dtype != DType::kF32 || w->dims.rank() < 2 || w->dims.elements() == 0 ||
      !op.input(0).rank_known)
    return std::nullopt;
  if (op.constant(0) != nullptr) return std::nullopt;
  if (matmul && (w->dims.rank() != 2 || op.input(0).rank() < 2)) return std::nullopt;
  if (gemm && (op.Float("beta") != 1 || op.Float("alpha") != 1 || op.Int("transA") != 0))
    return std::nullopt;
  if (conv || transposed) layer.groups = op.Int("group");
  layer.output_dim =
      conv || (gemm && op.Int("transB") != 0) ? WeightDim::kOuter : WeightDim::kInner;
  const bool outer = layer.output_dim == WeightDim::kOuter;
  layer.outputs = outer ? w->dims[0] : w->dims[1] * layer.groups;
  layer.inputs = outer ? w->dims[1] * layer.groups : w->dims[0];
  layer.takes_bias = !matmul;
  if (op.has_input(2)) {
    if (op.constant(2) == nullptr || (op.constant(2)->dims.elements() != layer.outputs &&
                                      op.constant(2)->dims.elements() != 1)) {
      return std::nullopt;
    }
    layer.bias = node.inputs[2];
  }
  return layer;
}

int ChannelAxis(const Rewriter& r, const Layer& layer, ValueId v) {
  const std::string& op = r.node(layer.n).op;
  return op == "Conv" || op == "ConvTranspose" ? 1 : r.type(v).rank() - 1;
}

// New weights count against the budget of folded constants.
bool Spend(const PassContext& context, const ConstTensor& weights, FoldBudget* own) {
  FoldBudget* budget = context.folding != nullptr ? context.folding : own;
  const auto bytes = static_cast<double>(weights.bytes.size());
  if (bytes > budget->bytes || bytes / 4 > budget->work) return false;
  budget->bytes -= bytes;
  budget->work -= bytes / 4;
  return true;
}

// Replaces node `at` by the layer with new constants. `bias` may be absent.
bool PutLayer(Rewriter* r, size_t at, const Layer& layer, ValueId input, ConstTensor weights,
              std::optional<ConstTensor> bias) {
  const Node node = r->node(layer.n);
  std::vector<ValueId> inputs{input,
                              r->AddConstant(node.name + ".scaled_weight", std::move(weights))};
  if (bias) inputs.push_back(r->AddConstant(node.name + ".scaled_bias", *std::move(bias)));
  else if (layer.bias != kNoValue) inputs.push_back(layer.bias);
  return r->Replace(at, node.op, std::move(inputs), node.attrs);
}

class ScaleFolder {
 public:
  ScaleFolder(const PassContext& context, Rewriter* r) : context_(context), r_(r) {}

  // Folds layer(x) * c or layer(x) + c.
  bool FoldAfter(size_t n) {
    const auto step = StepOf(*r_, r_->node(n));
    const auto p = step && r_->uses(step->x) == 1 ? r_->Producer(step->x) : std::nullopt;
    const auto layer = p ? LayerOf(*r_, *p) : std::nullopt;
    if (!layer) return p && step->product && FoldAfterBias(n, *step, *p);
    const auto numbers = PerChannel(*step, r_->type(step->x).rank(),
                                    ChannelAxis(*r_, *layer, step->x), layer->outputs);
    if (!numbers || (!layer->takes_bias && !step->product) ||
        !Spend(context_, *layer->weights, &own_))
      return false;
    const ChannelAffine affine = AffineOf(*step, *numbers);
    auto weights = step->product ? ScaledWeights(*layer->weights, affine.factor, layer->output_dim,
                                                 layer->groups)
                                 : *layer->weights;
    std::optional<ConstTensor> bias;
    if (layer->bias != kNoValue || !step->product) {
      bias = ScaledBias(layer->bias == kNoValue ? nullptr : r_->constant(layer->bias), affine);
      if (!bias) return false;
    }
    return weights && PutLayer(r_, n, *layer, r_->node(layer->n).inputs[0], *std::move(weights),
                               std::move(bias));
  }

  // Folds layer(x * c) or layer(x + c).
  bool FoldBefore(size_t n) {
    const auto layer = LayerOf(*r_, n);
    if (!layer) return false;
    const ValueId in = r_->node(n).inputs[0];
    const auto p = r_->uses(in) == 1 ? r_->Producer(in) : std::nullopt;
    const auto step = p && r_->IsLive(*p) ? StepOf(*r_, r_->node(*p)) : std::nullopt;
    if (!step) return false;
    const auto numbers =
        PerChannel(*step, r_->type(in).rank(), ChannelAxis(*r_, *layer, in), layer->inputs);
    if (!numbers || (!step->product && !PadsNothing(n)) || !Spend(context_, *layer->weights, &own_))
      return false;
    if (step->product) {
      auto weights = ScaledWeights(*layer->weights, *numbers, layer->input_dim(), layer->groups);
      return weights && PutLayer(r_, n, *layer, step->x, *std::move(weights), std::nullopt);
    }
    const auto gained = ShiftThroughConv(*layer->weights, *numbers, layer->groups);
    if (!gained) return false;
    auto bias = ScaledBias(layer->bias == kNoValue ? nullptr : r_->constant(layer->bias),
                           AffineOf(*step, *gained));
    return bias && PutLayer(r_, n, *layer, step->x, *layer->weights, std::move(bias));
  }

 private:
  // Folds (x W + b) * c for a MatMul, whose bias is a separate Add.
  bool FoldAfterBias(size_t n, const Step& step, size_t sum_node) {
    if (!r_->Is(sum_node, "Add")) return false;
    const auto sum = StepOf(*r_, r_->node(sum_node));
    const auto p = sum && r_->uses(sum->x) == 1 ? r_->Producer(sum->x, "MatMul") : std::nullopt;
    const auto layer = p ? LayerOf(*r_, *p) : std::nullopt;
    if (!layer) return false;
    const int rank = r_->type(sum->x).rank();
    const auto factors = PerChannel(step, rank, rank - 1, layer->outputs),
               shift = PerChannel(*sum, rank, rank - 1, layer->outputs);
    if (!factors || !shift || !Spend(context_, *layer->weights, &own_)) return false;
    auto weights = ScaledWeights(*layer->weights, *factors, layer->output_dim, 1);
    std::vector<float> old(shift->begin(), shift->end());
    const ConstTensor bias = ConstTensor::Floats({layer->outputs}, old);
    auto scaled = ScaledBias(&bias, {*factors, std::vector<double>(factors->size(), 0)});
    if (!weights || !scaled ||
        !PutLayer(r_, sum_node, *layer, r_->node(layer->n).inputs[0], *std::move(weights),
                  std::nullopt))
      return false;
    const ValueId product = r_->node(sum_node).outputs[0];
    return r_->Replace(
        n, "Add", {product, r_->AddConstant(r_->node(n).name + ".scaled_bias", *std::move(scaled))},
        {});
  }

  // A shift of the input is the same in every window only if the convolution pads nothing.
  bool PadsNothing(size_t n) const {
    if (!r_->Is(n, "Conv")) return false;
    const NodeView view(r_->graph(), r_->node(n));
    const auto pads = view.op().Ints("pads");
    const std::string_view mode = view.op().String("auto_pad");
    return (mode == "NOTSET" || mode == "VALID") &&
           std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
  }

  const PassContext& context_;
  Rewriter* r_;
  FoldBudget own_;
};

}  // namespace

Status FoldScale(const PassContext& context, Graph* graph) {
  Rewriter r(context, graph);
  ScaleFolder folder(context, &r);
  for (size_t n = 0; n < r.node_count(); ++n) {
    if (!r.IsLive(n)) continue;
    folder.FoldAfter(n);
    // A scale and a shift before a layer, one after the other.
    while (r.IsLive(n) && folder.FoldBefore(n)) continue;
  }
  return OkStatus();
}

}  // namespace msrt
