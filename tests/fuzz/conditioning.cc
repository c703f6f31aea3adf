#include "tests/fuzz/conditioning.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "core/base/half.h"
#include "ops/registry.h"
#include "tests/fuzz/random_values.h"

namespace msrt::testing {
namespace {

// Ops whose results are selected, moved or compared, never rounded: every implementation returns
// the same bits for the same inputs.
bool IsExact(const Node& node) {
  static const std::unordered_set<std::string_view> exact = {
      "Abs",
      "Neg",
      "Sign",
      "Ceil",
      "Floor",
      "Round",
      "Relu",
      "ThresholdedRelu",
      "Clip",
      "Cast",
      "Not",
      "BitwiseNot",
      "IsNaN",
      "IsInf",
      "Identity",
      "Max",
      "Min",
      "BitShift",
      "BitwiseAnd",
      "BitwiseOr",
      "BitwiseXor",
      "And",
      "Or",
      "Xor",
      "Equal",
      "Greater",
      "GreaterOrEqual",
      "Less",
      "LessOrEqual",
      "Where",
      "MaxPool",
      "GlobalMaxPool",
      "DepthToSpace",
      "SpaceToDepth",
      "Hardmax",
      "ReduceMax",
      "ReduceMin",
      "ArgMax",
      "ArgMin",
      "TopK",
      "Reshape",
      "Squeeze",
      "Unsqueeze",
      "Flatten",
      "Shape",
      "Size",
      "Expand",
      "ConstantOfShape",
      "Range",
      "EyeLike",
      "Trilu",
      "Transpose",
      "Concat",
      "Split",
      "Slice",
      "Tile",
      "ReverseSequence",
      "Pad",
      "Gather",
      "GatherElements",
      "GatherND",
      "OneHot",
      "Unique",
      "NonZero",
      "Compress",
      "StateRead",
      "StateWrite",
  };
  return exact.contains(node.op);
}

double EpsilonOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF32:
      return 0x1p-23;
    case DType::kF16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}

// Whether the input is a list that determines dims.
bool IsShapeList(const Node& node, size_t input) { return node.op == "Resize" && input > 0; }

// Returns the absolute error that an op may have where its result is small compared with its
// intermediate values: 1 + erf(x), exp(x) - 1, log(1 + exp(x)). oneDNN's logarithm of f32 is worse,
// by up to 3.4e-6.
double FloorOf(const Node& node) {
  static const std::unordered_set<std::string_view> cancelling = {
      "Gelu", "GeluTanh", "Mish",    "Softplus", "Elu", "Selu",
      "Celu", "Swish",    "Sigmoid", "Tanh",     "Erf"};
  if (node.op == "Log" || node.op == "LogSoftmax") return 4e-6;
  const AttrValue* activation = node.attrs.Find("activation");
  const std::string_view name = activation != nullptr
                                    ? std::string_view(std::get<std::string>(*activation))
                                    : std::string_view(node.op);
  return cancelling.contains(name) ? 5e-7 : 0;
}

constexpr int kNoiseUlps = 4;    // maximum noise of each input and output of each op that rounds
constexpr double kSpreads = 4;   // allowed multiple of the largest observed deviation
constexpr double kOwnUlps = 16;  // for the last op's own rounding

// The sign of an infinity often comes from a division by zero, whose sign no implementation
// guarantees.
enum class Kind { kFinite, kNan, kInfinite };
Kind KindOf(double v) {
  if (std::isnan(v)) return Kind::kNan;
  return std::isinf(v) ? Kind::kInfinite : Kind::kFinite;
}

struct NoiseMaker {
  Choices choices;
  Graph& graph;
  std::vector<Node> nodes;

  bool Applies(ValueId v) const {
    return graph.value(v).type.concrete() && IsFloat(graph.value(v).type.dtype);
  }

  // Adds op(v, a constant of `numbers`) with the result `target`, or a new value if that is none.
  ValueId Apply(std::string_view op, ValueId v, ValueId target, std::span<const double> numbers) {
    const Type type = graph.value(v).type;
    Node node;
    node.op = op;
    node.def = FindOp("", op);
    node.version = node.def->version;
    node.inputs = {v, graph.AddConstant("noise", FloatTensor(type.dtype, type.dims, numbers))};
    node.outputs = {target == kNoValue ? graph.AddValue("noisy", type) : target};
    nodes.push_back(std::move(node));
    return nodes.back().outputs[0];
  }

  // Flips the signs of the zeros of `v` into `target`: oneDNN's activations after a convolution
  // return -0 for negative numbers.
  void TurnZeros(ValueId v, ValueId target) {
    const Type type = graph.value(v).type;
    const double zero = 0;
    const ValueId zeros = graph.AddConstant("zero", FloatTensor(type.dtype, {}, {&zero, 1}));
    const ValueId turned = graph.AddValue("turned", type),
                  is_zero = graph.AddValue("is_zero", Type::Tensor(DType::kBool, type.dims));
    const auto add = [&](std::string_view op, std::vector<ValueId> inputs, ValueId output) {
      Node node;
      node.op = op;
      node.def = FindOp("", op);
      node.version = node.def->version;
      node.inputs = std::move(inputs);
      node.outputs = {output};
      nodes.push_back(std::move(node));
    };
    add("Equal", {v, zeros}, is_zero);
    add("Neg", {v}, turned);
    add("Where", {is_zero, turned, v}, target);
  }

  int64_t Sign() { return choices.OneIn(2) ? 1 : -1; }

  ValueId Scaled(ValueId v, ValueId target) {
    if (!Applies(v)) return v;
    const Type& type = graph.value(v).type;
    std::vector<double> factors(static_cast<size_t>(type.elements()));
    for (double& f : factors)
      f = 1 + EpsilonOf(type.dtype) * static_cast<double>(choices.Between(1, kNoiseUlps) * Sign());
    return Apply("Mul", v, target, factors);
  }

  void Disturb(ValueId v, ValueId target, double floor) {
    if (floor == 0 || graph.value(v).type.dtype != DType::kF32) {
      Scaled(v, target);
      return;
    }
    std::vector<double> offsets(static_cast<size_t>(graph.value(v).type.elements()));
    for (double& offset : offsets) offset = floor * static_cast<double>(Sign());
    Apply("Add", Scaled(v, kNoValue), target, offsets);
  }
};

template <typename T>
void Append(const ConstTensor& tensor, std::vector<double>* out) {
  for (T v : tensor.As<T>()) out->push_back(static_cast<double>(v));
}

}  // namespace

Module WithNoise(const Module& module, uint64_t seed) {
  Module noisy = module;
  Graph& graph = noisy.graphs[0];
  NoiseMaker noise{Choices(seed), graph, {}};
  for (Node& node : graph.nodes) {
    if (IsExact(node)) {
      noise.nodes.push_back(std::move(node));
      continue;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue && !IsShapeList(node, i))
        node.inputs[i] = noise.Scaled(node.inputs[i], kNoValue);
    }
    std::vector<std::pair<ValueId, ValueId>> results;  // without and with noise
    for (ValueId& v : node.outputs) {
      if (v == kNoValue || !noise.Applies(v)) continue;
      results.emplace_back(graph.AddValue("result", graph.value(v).type), v);
      v = results.back().first;
    }
    const double floor = FloorOf(node);
    const bool activated = node.attrs.Find("activation") != nullptr;
    noise.nodes.push_back(std::move(node));
    for (const auto& [result, target] : results) {
      if (!activated || noise.choices.OneIn(2)) {
        noise.Disturb(result, target, floor);
        continue;
      }
      const ValueId disturbed = graph.AddValue("disturbed", graph.value(target).type);
      noise.Disturb(result, disturbed, floor);
      noise.TurnZeros(disturbed, target);
    }
  }
  graph.nodes = std::move(noise.nodes);
  return noisy;
}

std::vector<double> NumbersOf(const ConstTensor& tensor) {
  std::vector<double> out;
  switch (tensor.dtype) {
    case DType::kF64:
      Append<double>(tensor, &out);
      break;
    case DType::kF32:
      Append<float>(tensor, &out);
      break;
    case DType::kF16:
      for (Half h : tensor.As<Half>()) out.push_back(static_cast<double>(static_cast<float>(h)));
      break;
    case DType::kBF16:
      for (BFloat16 h : tensor.As<BFloat16>())
        out.push_back(static_cast<double>(static_cast<float>(h)));
      break;
    case DType::kI64:
      Append<int64_t>(tensor, &out);
      break;
    case DType::kU64:
      Append<uint64_t>(tensor, &out);
      break;
    case DType::kI32:
      Append<int32_t>(tensor, &out);
      break;
    case DType::kU32:
      Append<uint32_t>(tensor, &out);
      break;
    case DType::kI16:
      Append<int16_t>(tensor, &out);
      break;
    case DType::kU16:
      Append<uint16_t>(tensor, &out);
      break;
    default:
      Append<uint8_t>(tensor, &out);
      break;
  }
  return out;
}

Tolerance::Tolerance(const ConstTensor& expected)
    : expected_(expected),
      values_(NumbersOf(expected)),
      spread_(values_.size()),
      undecided_(values_.size()) {}

void Tolerance::AddNoisy(const ConstTensor& noisy) {
  if (!(noisy.dims == expected_.dims)) {
    undecided_.assign(undecided_.size(), true);
    return;
  }
  const std::vector<double> other = NumbersOf(noisy);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (KindOf(other[i]) != KindOf(values_[i])) undecided_[i] = true;
    else if (std::isfinite(values_[i]))
      spread_[i] = std::max(spread_[i], std::fabs(other[i] - values_[i]));
  }
}

size_t Tolerance::compared() const {
  return static_cast<size_t>(std::count(undecided_.begin(), undecided_.end(), false));
}

std::string Tolerance::Difference(const ConstTensor& got) const {
  if (got.dtype != expected_.dtype || !(got.dims == expected_.dims)) {
    return compared() == 0 && !values_.empty()
               ? ""
               : StrCat("is ", got.type(), ", expected ", expected_.type());
  }
  const std::vector<double> numbers = NumbersOf(got);
  // A few samples miss the worst case of single elements; neighbours are computed the same way.
  const double mean = spread_.empty() ? 0
                                      : std::accumulate(spread_.begin(), spread_.end(), 0.0) /
                                            static_cast<double>(spread_.size());
  const double own = mean > 0 && IsFloat(got.dtype) ? kOwnUlps * EpsilonOf(got.dtype) : 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (undecided_[i] || (spread_[i] > 0 && !IsFloat(got.dtype))) continue;
    const double allowed = kSpreads * spread_[i] + mean + own * std::fabs(values_[i]);
    const bool same_kind = KindOf(numbers[i]) == KindOf(values_[i]);
    // A number of uncertain sign may come from a division by a number that may be zero.
    if (!same_kind && std::isfinite(values_[i]) && allowed > std::fabs(values_[i])) continue;
    if (same_kind && (!std::isfinite(values_[i]) ||
                      std::fabs(numbers[i] - values_[i]) <= (IsFloat(got.dtype) ? allowed : 0)))
      continue;
    return StrCat(got.type(), ", element ", i, " is ", numbers[i], ", expected ", values_[i],
                  ", allowed difference ", allowed);
  }
  return "";
}

}  // namespace msrt::testing
