#include "core/passes/fold_batchnorm.h"

#include <cmath>

#include "ops/node_view.h"

namespace msrt {
namespace {

// y = scale * (x - mean) / sqrt(var + epsilon) + bias, as factor * x + shift for each channel, in double.
struct Affine {
  std::vector<double> factor, shift;
};

bool IsF32(const ConstTensor* t, int64_t elements) { return t != nullptr && t->dtype == DType::kF32 && t->dims.elements() == elements; }

bool AffineOf(const Graph& graph, const Node& norm, int64_t channels, Affine* out) {
  const ConstTensor* parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    parameters[i] = graph.value(norm.inputs[i + 1]).constant.get();
    if (!IsF32(parameters[i], channels)) return false;
  }
  const double epsilon = NodeView(graph, norm).op().Float("epsilon");
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double factor = parameters[0]->As<float>()[c] / std::sqrt(static_cast<double>(parameters[3]->As<float>()[c]) + epsilon);
    if (!std::isfinite(factor)) return false;
    out->factor.push_back(factor);
    out->shift.push_back(parameters[1]->As<float>()[c] - parameters[2]->As<float>()[c] * factor);
  }
  return true;
}

// Conv weights are [M, C/g, k...]; those of ConvTranspose [C, M/g, k...], so the output channel depends on the group of the row.
ConstTensor ScaledWeights(const ConstTensor& w, const Affine& affine, bool transposed, int64_t group) {
  std::vector<float> scaled(static_cast<size_t>(w.dims.elements()));
  const auto source = w.As<float>();
  const int64_t inner = w.dims.product(2, w.dims.rank());
  const int64_t rows = w.dims[0], columns = w.dims[1];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t channel = transposed ? r / (rows / group) * columns + c : r;
      const double factor = affine.factor[static_cast<size_t>(channel)];
      for (int64_t i = (r * columns + c) * inner; i < (r * columns + c + 1) * inner; ++i) {
        scaled[static_cast<size_t>(i)] = static_cast<float>(source[static_cast<size_t>(i)] * factor);
      }
    }
  }
  return ConstTensor::Floats(w.dims, scaled);
}

bool FoldOne(Graph* graph, Node* conv, const Node& norm) {
  const bool transposed = conv->op == "ConvTranspose";
  const std::shared_ptr<const ConstTensor> weights = graph->value(conv->inputs[1]).constant;
  if (weights == nullptr || weights->dtype != DType::kF32) return false;
  const int64_t group = NodeView(*graph, *conv).op().Int("group");
  const int64_t channels = transposed ? weights->dims[1] * group : weights->dims[0];
  Affine affine;
  if (!AffineOf(*graph, norm, channels, &affine)) return false;
  std::vector<float> bias(static_cast<size_t>(channels), 0);
  if (conv->inputs.size() > 2 && conv->inputs[2] != kNoValue) {
    const ConstTensor* old = graph->value(conv->inputs[2]).constant.get();
    if (!IsF32(old, channels)) return false;
    bias.assign(old->As<float>().begin(), old->As<float>().end());
  }
  for (size_t c = 0; c < bias.size(); ++c) bias[c] = static_cast<float>(bias[c] * affine.factor[c] + affine.shift[c]);
  conv->inputs.resize(3, kNoValue);
  conv->inputs[1] = graph->AddConstant(conv->name + ".folded_weight", ScaledWeights(*weights, affine, transposed, group));
  conv->inputs[2] = graph->AddConstant(conv->name + ".folded_bias", ConstTensor::Floats({channels}, bias));
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
    if (!norm.domain.empty() || norm.op != "BatchNormalization" || norm.outputs.size() != 1) continue;
    const uint32_t x = IndexOf(norm.inputs[0]);
    if (producers[x] < 0 || uses[x] != 1) continue;
    Node& conv = graph->nodes[static_cast<size_t>(producers[x])];
    const bool is_conv = conv.domain.empty() && (conv.op == "Conv" || conv.op == "ConvTranspose");
    if (is_conv && !folded[static_cast<size_t>(producers[x])]) folded[n] = FoldOne(graph, &conv, norm);
  }
  size_t index = 0;
  std::erase_if(graph->nodes, [&](const Node&) { return folded[index++]; });
  return OkStatus();
}

}  // namespace msrt
