#include "core/passes/fold_batchnorm.h"

#include <cmath>

#include "core/passes/channel_affine.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

bool IsF32(const ConstTensor* t, int64_t elements) {
  return t != nullptr && t->dtype == DType::kF32 && t->dims.elements() == elements;
}

// Computes y = scale * (x - mean) / sqrt(var + epsilon) + bias as factor * x + shift for each
// channel, in double.
bool AffineOf(const Graph& graph, const Node& norm, int64_t channels, ChannelAffine* out) {
  const ConstTensor* parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    parameters[i] = graph.value(norm.inputs[i + 1]).constant.get();
    if (!IsF32(parameters[i], channels)) return false;
  }
  const double epsilon = NodeView(graph, norm).op().Float("epsilon");
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double factor = parameters[0]->As<float>()[c] /
                          std::sqrt(static_cast<double>(parameters[3]->As<float>()[c]) + epsilon);
    if (!std::isfinite(factor)) return false;
    out->factor.push_back(factor);
    out->shift.push_back(parameters[1]->As<float>()[c] - parameters[2]->As<float>()[c] * factor);
  }
  return true;
}

bool FoldOne(Graph* graph, Node* conv, const Node& norm) {
  const bool transposed = conv->op == "ConvTranspose";
  const std::shared_ptr<const ConstTensor> weights = graph->value(conv->inputs[1]).constant;
  if (weights == nullptr || weights->dtype != DType::kF32) return false;
  const int64_t group = NodeView(*graph, *conv).op().Int("group");
  const int64_t channels = transposed ? weights->dims[1] * group : weights->dims[0];
  ChannelAffine affine;
  if (!AffineOf(*graph, norm, channels, &affine)) return false;
  const bool has_bias = conv->inputs.size() > 2 && conv->inputs[2] != kNoValue;
  const ConstTensor* old = has_bias ? graph->value(conv->inputs[2]).constant.get() : nullptr;
  if (has_bias && !IsF32(old, channels)) return false;
  auto scaled = ScaledWeights(*weights, affine.factor,
                              transposed ? WeightDim::kInner : WeightDim::kOuter, group);
  auto bias = ScaledBias(old, affine);
  if (!scaled || !bias) return false;
  conv->inputs.resize(3, kNoValue);
  conv->inputs[1] = graph->AddConstant(conv->name + ".folded_weight", *std::move(scaled));
  conv->inputs[2] = graph->AddConstant(conv->name + ".folded_bias", *std::move(bias));
  conv->outputs[0] = norm.outputs[0];
  return true;
}

}  // namespace

Status FoldBatchNorm(const PassContext&, Graph* graph) {
  const std::vector<uint32_t> uses = graph->UseCounts();
  const std::vector<int32_t> producers = graph->Producers();
  std::vector<bool> folded(graph->nodes.size());
  for (size_t n = 0; n < graph->nodes.size(); ++n) {
    const Node& norm = graph->nodes[n];
    if (!norm.domain.empty() || norm.op != "BatchNormalization" || norm.outputs.size() != 1)
      continue;
    const uint32_t x = IndexOf(norm.inputs[0]);
    if (producers[x] < 0 || uses[x] != 1) continue;
    Node& conv = graph->nodes[static_cast<size_t>(producers[x])];
    const bool is_conv =
        conv.domain.empty() && !IsPiece(conv) && (conv.op == "Conv" || conv.op == "ConvTranspose");
    if (is_conv && !folded[static_cast<size_t>(producers[x])])
      folded[n] = FoldOne(graph, &conv, norm);
  }
  size_t index = 0;
  std::erase_if(graph->nodes, [&](const Node&) { return folded[index++]; });
  return OkStatus();
}

}  // namespace msrt
