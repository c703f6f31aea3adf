#include "core/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/grad_builder.h"

namespace msrt {
namespace {

// Ops of which only the first inputs can be weights.
struct WeightInputs {
  std::string_view op;
  size_t count;
};
constexpr WeightInputs kWeightInputs[] = {
    {"BatchNormalization", 3},
    {"Clip", 1},
    {"Resize", 1},
    {"Upsample", 1},
    {"Pad", 1},
    {"Pow", 1},
    {"Mod", 1},
    {"Dropout", 1},
    {"Where", 0},
    {"QuantizeLinear", 1},
    {"DequantizeLinear", 0},
    {"RotaryEmbedding", 1},
    {"Attention", 3},
    {"GridSample", 1},
    {"RoiAlign", 1},
    {"SoftmaxCrossEntropyLoss", 1},
    {"NegativeLogLikelihoodLoss", 1},
    {"Max", 0},
    {"Min", 0},
};
// Ops whose operands of one element are weights too: a layer with one channel.
constexpr std::string_view kLayers[] = {"Conv",   "ConvTranspose",
                                        "Gemm",   "MatMul",
                                        "PRelu",  "BatchNormalization",
                                        "Add",    "LayerNormalization",
                                        "LSTM",   "GRU",
                                        "RNN",    "GroupNormalization",
                                        "Gather", "InstanceNormalization",
                                        "Einsum", "RMSNormalization"};

// Ops that only arrange a constant anew: the node that reads their result decides what it is.
constexpr std::string_view kMoves[] = {"Identity", "Cast",      "Unsqueeze", "Squeeze",
                                       "Reshape",  "Transpose", "Flatten",   "Expand"};

// Returns for each value the constant that it is, or is a new arrangement of; kNoValue: none.
std::vector<ValueId> SourcesOf(const Graph& graph) {
  std::vector<ValueId> sources(graph.value_count(), kNoValue);
  for (uint32_t v = 0; v < sources.size(); ++v) {
    if (graph.value(ValueId{v}).constant != nullptr) sources[v] = ValueId{v};
  }
  for (const Node& node : graph.nodes) {
    const bool moves = node.domain.empty() &&
                       std::find(std::begin(kMoves), std::end(kMoves), node.op) != std::end(kMoves);
    if (moves && node.inputs[0] != kNoValue)
      sources[IndexOf(node.outputs[0])] = sources[IndexOf(node.inputs[0])];
  }
  return sources;
}

// Dims other than 1.
int WideDims(const Type& type) {
  return static_cast<int>(
      std::count_if(type.dims.begin(), type.dims.end(), [](int64_t d) { return d != 1; }));
}

bool IsLayer(const Node& node) {
  return std::find(std::begin(kLayers), std::end(kLayers), node.op) != std::end(kLayers);
}

bool CanBeWeight(const Node& node, size_t input, const Type& type) {
  // What is subtracted or divided by is a mean or a standard deviation; tables that are multiplied
  // by are cosines and sines of positions.
  if (node.domain.empty() && (node.op == "Sub" || node.op == "Div")) return false;
  if (node.domain.empty() && node.op == "Mul" && WideDims(type) > 1) return false;
  if (node.def == nullptr || node.def->grad == nullptr || node.def->grad == GradZero) return false;
  for (const WeightInputs& rule : kWeightInputs) {
    if (node.op == rule.op && input >= rule.count) return false;
  }
  if (type.rank() == 0) return false;
  return type.elements() > 1 || IsLayer(node);
}

// Marks the values that are computed from inputs of the graph before its first layer. Layers are
// nodes with weights, other than additions and products of elements. All are unmarked if there is
// no layer.
std::vector<bool> ValuesBeforeLayers(const Graph& graph, const std::vector<ValueId>& sources,
                                     const std::vector<bool>& is_weight) {
  std::vector<bool> before(graph.value_count());
  bool has_layers = false;
  for (const ValueId v : graph.inputs) before[IndexOf(v)] = true;
  for (const Node& node : graph.nodes) {
    const bool elements = node.domain.empty() && (node.op == "Add" || node.op == "Mul");
    bool layer = false, computed = false, later = false;
    for (const ValueId v : node.inputs) {
      if (v == kNoValue) continue;
      const ValueId source = sources[IndexOf(v)];
      layer = layer || (source != kNoValue && is_weight[IndexOf(source)] && !elements);
      computed = computed || before[IndexOf(v)];
      later = later || (source == kNoValue && !before[IndexOf(v)]);
    }
    has_layers = has_layers || layer;
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) before[IndexOf(v)] = computed && !layer && !later;
    }
  }
  if (!has_layers) before.assign(before.size(), false);
  return before;
}

// A constant for each channel that is added to a value before the first layer, or multiplied with
// it, normalizes inputs.
void RemovePreprocessing(const Graph& graph, const std::vector<ValueId>& sources,
                         std::vector<bool>* is_weight) {
  const std::vector<bool> before = ValuesBeforeLayers(graph, sources, *is_weight);
  for (const Node& node : graph.nodes) {
    if (!node.domain.empty() || (node.op != "Add" && node.op != "Mul")) continue;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId source = sources[IndexOf(node.inputs[i])], other = node.inputs[1 - i];
      if (source != kNoValue && before[IndexOf(other)] && WideDims(graph.value(source).type) <= 1)
        (*is_weight)[IndexOf(source)] = false;
    }
  }
}

// Masks have numbers that no weight has.
bool LooksLikeMask(const ConstTensor& constant) {
  constexpr double kLargest = 1e4;
  const auto is_large = [](auto x) { return !(std::abs(static_cast<double>(x)) < kLargest); };
  if (constant.dtype == DType::kF32) {
    const auto values = constant.As<float>();
    return std::any_of(values.begin(), values.end(), is_large);
  }
  if (constant.dtype == DType::kF64) {
    const auto values = constant.As<double>();
    return std::any_of(values.begin(), values.end(), is_large);
  }
  return false;
}

std::string UniqueName(std::string name, std::set<std::string>* used) {
  if (name.empty()) name = "parameter";
  std::string unique = name;
  for (int i = 1; !used->insert(unique).second; ++i) unique = StrCat(name, ".", i);
  return unique;
}

// Sets what the first matching group says; `matched` is by group.
void ApplyGroups(const TrainingSpec& spec, Parameter* parameter, std::vector<bool>* matched) {
  const bool decays = !parameter->is_vector || spec.optimizer.decays_vectors;
  parameter->weight_decay = decays ? spec.optimizer.weight_decay : 0;
  for (size_t g = 0; g < spec.groups.size(); ++g) {
    const ParameterGroup& group = spec.groups[g];
    if (!MatchesPattern(parameter->name, group.pattern)) continue;
    (*matched)[g] = true;
    parameter->rate_factor = group.rate_factor;
    if (group.weight_decay) parameter->weight_decay = *group.weight_decay;
    return;
  }
}

Status CheckMatched(const std::vector<bool>& matched, std::string_view what,
                    const std::vector<std::string_view>& patterns) {
  for (size_t i = 0; i < matched.size(); ++i) {
    if (!matched[i]) {
      return InvalidArgument(what, " '", patterns[i],
                             "' matches no parameter; msrun MODEL --dump=graph lists the names");
    }
  }
  return OkStatus();
}

}  // namespace

bool MatchesPattern(std::string_view name, std::string_view pattern) {
  // The position to return to: after the last *, with one more character of the name in it.
  size_t n = 0, p = 0, star = std::string_view::npos, star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_name = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++n, ++p;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<std::vector<Parameter>> FindParameters(const Graph& graph, const TrainingSpec& spec) {
  const std::vector<ValueId> sources = SourcesOf(graph);
  std::vector<bool> is_weight(graph.value_count());
  for (const Node& node : graph.nodes) {
    if (!node.outputs.empty() && node.outputs[0] != kNoValue &&
        sources[IndexOf(node.outputs[0])] != kNoValue)
      continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i] == kNoValue ? kNoValue : sources[IndexOf(node.inputs[i])];
      if (v == kNoValue) continue;
      const Type& type = graph.value(v).type;
      if (IsFloat(type.dtype) && CanBeWeight(node, i, type)) is_weight[IndexOf(v)] = true;
    }
  }
  RemovePreprocessing(graph, sources, &is_weight);
  std::vector<Parameter> parameters;
  std::set<std::string> names;
  std::vector<bool> frozen(spec.frozen.size()), grouped(spec.groups.size());
  for (uint32_t v = 0; v < is_weight.size(); ++v) {
    const Value& value = graph.value(ValueId{v});
    if (!is_weight[v] || LooksLikeMask(*value.constant)) continue;
    Parameter parameter;
    parameter.constant = ValueId{v};
    parameter.name = UniqueName(value.name, &names);
    parameter.is_vector = value.type.rank() <= 1;
    bool is_frozen = false;
    for (size_t f = 0; f < spec.frozen.size(); ++f) {
      if (!MatchesPattern(parameter.name, spec.frozen[f])) continue;
      frozen[f] = is_frozen = true;
    }
    ApplyGroups(spec, &parameter, &grouped);
    if (!is_frozen) parameters.push_back(std::move(parameter));
  }
  MSRT_RETURN_IF_ERROR(CheckMatched(frozen, "frozen", {spec.frozen.begin(), spec.frozen.end()}));
  std::vector<std::string_view> patterns;
  for (const ParameterGroup& group : spec.groups) patterns.push_back(group.pattern);
  MSRT_RETURN_IF_ERROR(CheckMatched(grouped, "parameter group", patterns));
  if (parameters.empty()) {
    return InvalidArgument("graph '", graph.name, "' has no parameters to train",
                           spec.frozen.empty() ? "" : ": all are frozen");
  }
  return parameters;
}

}  // namespace msrt
