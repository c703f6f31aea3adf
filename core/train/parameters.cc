#include "core/train/parameters.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ops/control.h"
#include "ops/grad_builder.h"

namespace msrt {
namespace {

// Ops of which only the first inputs can be weights.
struct WeightRule {
  std::string_view op;
  size_t count;
};
constexpr WeightRule kWeightRules[] = {
    {"BatchNormalization", 3}, {"Clip", 1},          {"Resize", 1},      {"Upsample", 1},
    {"Pad", 1},                {"Pow", 1},           {"Mod", 1},         {"Dropout", 1},
    {"Where", 0},              {"QuantizeLinear", 1}, {"DequantizeLinear", 0},
    {"RotaryEmbedding", 1},    {"Attention", 3},     {"GridSample", 1},  {"RoiAlign", 1},
    {"SoftmaxCrossEntropyLoss", 1}, {"NegativeLogLikelihoodLoss", 1}, {"Max", 0}, {"Min", 0},
};
// Ops whose operands of one element are weights too: a layer with one channel.
constexpr std::string_view kLayers[] = {
    "Conv",  "ConvTranspose",      "Gemm",      "MatMul",
    "PRelu", "BatchNormalization", "Add",       "LayerNormalization",
    "LSTM",  "GRU",                "RNN",       "GroupNormalization",
    "Gather", "InstanceNormalization", "Einsum", "RMSNormalization"};

bool CanBeWeight(const Node& node, size_t input, const Type& type) {
  if (node.def == nullptr || node.def->grad == nullptr || node.def->grad == GradZero) return false;
  for (const WeightRule& rule : kWeightRules) {
    if (node.op == rule.op && input >= rule.count) return false;
  }
  if (type.rank() == 0) return false;
  return !type.concrete() || type.elements() > 1 ||
         std::find(std::begin(kLayers), std::end(kLayers), node.op) != std::end(kLayers);
}

// Masks have numbers that no weight has.
bool LooksLikeMask(const ConstTensor& constant) {
  constexpr double kLargest = 1e4;
  const auto is_large = [](auto x) {
    return !(std::abs(static_cast<double>(x)) < kLargest);
  };
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

// Whether a graph that the node calls gets this input passed on and uses it as a weight.
bool PassesWeight(const Node& node, size_t input, const WeightInputs& inputs) {
  const ControlShape shape = ShapeOfControl(node);
  if (input < shape.captured_from()) return false;
  const size_t position = shape.body_extra_inputs() + input - shape.leading;
  return std::any_of(shape.graphs.begin(), shape.graphs.end(), [&](uint32_t g) {
    return g < inputs.size() && position < inputs[g].size() && inputs[g][position];
  });
}

// By value: whether it is of a float type and read as a weight.
std::vector<bool> UsedAsWeights(const Graph& graph, const WeightInputs& inputs) {
  std::vector<bool> used(graph.value_count());
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue) continue;
      const Type& type = graph.value(v).type;
      if (!type.is_tensor() || !IsFloat(type.dtype) || !type.rank_known) continue;
      const bool is_weight =
          IsControl(node) ? PassesWeight(node, i, inputs) : CanBeWeight(node, i, type);
      if (is_weight) used[IndexOf(v)] = true;
    }
  }
  return used;
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

WeightInputs FindWeightInputs(const Module& module) {
  WeightInputs inputs;
  for (const Graph& graph : module.graphs) inputs.emplace_back(graph.inputs.size());
  // Each round finds the inputs that are passed on once more.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t g = 0; g < module.graphs.size(); ++g) {
      const std::vector<bool> used = UsedAsWeights(module.graphs[g], inputs);
      for (size_t i = 0; i < inputs[g].size(); ++i) {
        if (inputs[g][i] || !used[IndexOf(module.graphs[g].inputs[i])]) continue;
        inputs[g][i] = changed = true;
      }
    }
  }
  return inputs;
}

std::vector<ValueId> FindWeights(const Graph& graph, const WeightInputs& inputs) {
  const std::vector<bool> used = UsedAsWeights(graph, inputs);
  std::vector<ValueId> weights;
  for (uint32_t v = 0; v < used.size(); ++v) {
    const Value& value = graph.value(ValueId{v});
    if (used[v] && value.constant != nullptr && !LooksLikeMask(*value.constant))
      weights.push_back(ValueId{v});
  }
  return weights;
}

Result<std::vector<Parameter>> FindParameters(const Graph& graph, const TrainingSpec& spec,
                                              const std::vector<ValueId>& passed_on) {
  std::vector<ValueId> weights = FindWeights(graph);
  for (const ValueId v : passed_on) {
    if (std::find(weights.begin(), weights.end(), v) == weights.end()) weights.push_back(v);
  }
  std::vector<Parameter> parameters;
  std::set<std::string> names;
  std::vector<bool> frozen(spec.frozen.size()), grouped(spec.groups.size());
  for (const ValueId v : weights) {
    const Value& value = graph.value(v);
    Parameter parameter;
    parameter.constant = v;
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
  MSRT_RETURN_IF_ERROR(
      CheckMatched(frozen, "frozen", {spec.frozen.begin(), spec.frozen.end()}));
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
