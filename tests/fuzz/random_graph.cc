#include "tests/fuzz/random_graph.h"

#include <algorithm>
#include <memory>

#include "ops/registry.h"
#include "tests/fuzz/grower.h"

namespace msrt::testing {
namespace {

constexpr int64_t kMaxTensorElements = 4096;
constexpr int kMaxNodes = 20, kTries = 12;

const std::vector<const OpDef*>& Ops() {
  static const std::vector<const OpDef*> ops = [] {
    std::vector<const OpDef*> all;
    ForEachOp([&](const OpDef& def) { all.push_back(&def); });
    return all;
  }();
  return ops;
}

// Ops that passes and delegates fuse with the node before them.
const OpDef* FollowUp(Choices& choices, const Graph& graph) {
  constexpr std::string_view kStarts[] = {"Conv", "ConvTranspose",      "MatMul",
                                          "Gemm", "BatchNormalization", "Add"};
  constexpr std::string_view kNext[] = {
      "BatchNormalization", "Add",       "Mul",  "Relu", "LeakyRelu", "Sigmoid", "Tanh",
      "HardSigmoid",        "HardSwish", "Clip", "Gelu", "Elu",       "Swish",   "Mish",
      "Softplus",           "Identity"};
  if (graph.nodes.empty() || !choices.OneIn(2)) return nullptr;
  const bool starts =
      std::find(std::begin(kStarts), std::end(kStarts), graph.nodes.back().op) != std::end(kStarts);
  return starts ? FindOp("", choices.Of(kNext)) : nullptr;
}

}  // namespace

Grower::Grower(uint64_t seed) : choices(seed), builder_(&result.module.graphs.emplace_back()) {
  result.module.name = "random";
  result.module.entries = {0};
  graph().name = "main";
}

ValueId Grower::Given(ConstTensor data) {
  if (choices.OneIn(3)) return Constant(std::move(data));
  const ValueId v = graph().AddInput(StrCat("x", graph().inputs.size()), data.type());
  result.inputs.push_back(std::move(data));
  usable_.push_back(v);
  return v;
}

ValueId Grower::Constant(ConstTensor data) {
  return graph().AddConstant(StrCat("c", graph().value_count()), std::move(data));
}

ValueId Grower::Indices(const Dims& dims, int64_t low, int64_t high) {
  return Given(
      RandomIndices(choices, choices.OneIn(2) ? DType::kI32 : DType::kI64, dims, low, high));
}

Dims Grower::SmallDims(int rank) {
  Dims dims;
  for (int i = 0; i < rank; ++i)
    dims.push_back(choices.OneIn(60) ? 0 : choices.Between(1, rank > 3 ? 5 : 9));
  return dims;
}

ValueId Grower::Any(DTypeSet types, int low, int high) {
  if (!choices.OneIn(4)) {
    std::vector<ValueId> fitting;
    for (ValueId v : usable_) {
      if (types.Has(TypeOf(v).dtype) && TypeOf(v).rank() >= low && TypeOf(v).rank() <= high)
        fitting.push_back(v);
    }
    // Often the newest, so that graphs are deep as well as wide.
    if (!fitting.empty()) return choices.OneIn(3) ? choices.Of(fitting) : fitting.back();
  }
  return New(choices.OneIn(2) && types.Has(DType::kF32) ? DType::kF32 : choices.TypeOf(types),
             SmallDims(static_cast<int>(choices.Between(low, high))));
}

Dims Grower::Broadcastable(const Dims& dims) {
  if (choices.OneIn(2)) return dims;
  Dims out;
  const int skipped = static_cast<int>(choices.Between(0, dims.rank()));
  for (int i = skipped; i < dims.rank(); ++i) out.push_back(choices.OneIn(3) ? 1 : dims[i]);
  return out;
}

void Grower::SetList(std::string_view attr, size_t input, const Ints& values, Proposal* p) {
  if (!choices.OneIn(4)) {
    p->attrs.Set(attr, values);
    return;
  }
  p->inputs.resize(std::max(p->inputs.size(), input + 1), kNoValue);
  p->inputs[input] = Constant(ConstTensor::Int64s(values));
}

void Grower::SetNumber(std::string_view attr, size_t input, int64_t value, Proposal* p) {
  if (!choices.OneIn(4)) {
    p->attrs.Set(attr, value);
    return;
  }
  p->inputs.resize(std::max(p->inputs.size(), input + 1), kNoValue);
  p->inputs[input] = Constant(ConstTensor::Int64s(std::span(&value, 1)));
}

std::optional<AttrValue> Grower::GenericAttr(const AttrDef& attr, int rank) {
  const auto number = [&] {
    if (attr.name == "axis" || attr.name == "axes") return rank == 0 ? 0 : Axis(rank);
    const int64_t low = std::max<int64_t>(attr.min_int, -3),
                  high = std::min<int64_t>(attr.max_int, std::max<int64_t>(low, 4));
    return choices.Between(low, high);
  };
  const auto real = [&] {
    return std::clamp(choices.Unit() * 4 - 1, attr.min_float, attr.max_float);
  };
  switch (attr.kind) {
    case AttrKind::kInt:
      return number();
    case AttrKind::kFloat:
      return real();
    case AttrKind::kString:
      return attr.choices.empty() ? std::string() : std::string(choices.Of(attr.choices));
    case AttrKind::kInts: {
      Ints list(choices.Below(static_cast<size_t>(rank) + 1));
      for (int64_t& v : list) v = number();
      return list;
    }
    case AttrKind::kFloats: {
      std::vector<double> list(static_cast<size_t>(rank));
      for (double& v : list) v = real();
      return list;
    }
    case AttrKind::kDType:
      return choices.TypeOf(attr.name == "to" ? kAllTypes : kComputeTypes);
    default:
      return std::nullopt;
  }
}

Proposal Grower::Generic(const OpDef& def) {
  Proposal p;
  DType of_group[8] = {};
  Dims first;
  for (const ParamDef& param : def.inputs) {
    if (param.kind == ParamDef::kOptional && choices.OneIn(2)) {
      p.inputs.push_back(kNoValue);
      continue;
    }
    const int64_t copies = param.kind == ParamDef::kVariadic ? choices.Between(1, 3) : 1;
    for (int64_t i = 0; i < copies; ++i) {
      DType& group = of_group[param.group];
      const DTypeSet types =
          param.group != 0 && group != DType::kNone ? DTypeSet{group} : param.types;
      const bool is_first = p.inputs.empty();
      const ValueId v = is_first || choices.OneIn(3)
                            ? Any(types)
                            : New(choices.TypeOf(types), Broadcastable(first));
      if (is_first) first = DimsOf(v);
      group = TypeOf(v).dtype;
      p.inputs.push_back(v);
    }
  }
  while (!p.inputs.empty() && p.inputs.back() == kNoValue) p.inputs.pop_back();
  for (const AttrDef& attr : def.attrs) {
    if (attr.local || (!attr.required && choices.OneIn(2))) continue;
    if (auto value = GenericAttr(attr, first.rank())) p.attrs.Set(attr.name, *std::move(value));
  }
  p.outputs = static_cast<size_t>(choices.Between(def.min_outputs, std::min(def.max_outputs, 3)));
  return p;
}

bool Grower::TryNode(const OpDef& def) {
  const Recipe recipe = RecipeFor(def);
  Proposal p = recipe != nullptr ? recipe(*this, def) : Generic(def);
  const auto outputs = builder_.Add(def.domain, def.name, StrCat("n", graph().nodes.size()),
                                    std::move(p.inputs), std::move(p.attrs), p.outputs);
  if (!outputs.ok()) return false;
  const auto too_large = [&](ValueId v) {
    return TypeOf(v).concrete() && TypeOf(v).elements() > kMaxTensorElements;
  };
  if (std::any_of(outputs->begin(), outputs->end(), too_large)) {
    graph().nodes.pop_back();
    return false;
  }
  for (ValueId v : *outputs) {
    if (TypeOf(v).concrete() && TypeOf(v).rank() <= 6) usable_.push_back(v);
  }
  return true;
}

void Grower::Finish() {
  const std::vector<uint32_t> uses = graph().UseCounts();
  std::vector<ValueId> used_inputs;
  std::vector<ConstTensor> used_data;
  for (size_t i = 0; i < graph().inputs.size(); ++i) {
    if (uses[IndexOf(graph().inputs[i])] == 0) continue;
    used_inputs.push_back(graph().inputs[i]);
    used_data.push_back(result.inputs[i]);
  }
  graph().inputs = std::move(used_inputs);
  result.inputs = std::move(used_data);
  for (const Node& node : graph().nodes) {
    for (ValueId v : node.outputs) {
      if (uses[IndexOf(v)] == 0) graph().outputs.push_back(v);
    }
  }
  graph().CompactValues();
}

void Grower::Grow(int count) {
  while (static_cast<int>(graph().nodes.size()) < count) {
    const OpDef* next = FollowUp(choices, graph());
    const OpDef& def = next != nullptr ? *next : *choices.Of(Ops());
    for (int i = 0; i < kTries && !TryNode(def); ++i) {
    }
  }
  Finish();
}

RandomGraph MakeRandomGraph(uint64_t seed) {
  Grower grower(seed);
  grower.Grow(static_cast<int>(grower.choices.Between(1, kMaxNodes)));
  return std::move(grower.result);
}

}  // namespace msrt::testing
