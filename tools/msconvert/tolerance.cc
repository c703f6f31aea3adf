#include "tools/msconvert/tolerance.h"

#include <algorithm>
#include <cmath>

#include "delegates/reference/elements.h"
#include "ops/control.h"
#include "tools/tensors/compare.h"

namespace msrt {
namespace {

// How exact a value is, from exact to coarse. A value that depends on no element of an input is
// kConstant.
enum class Exactness { kConstant, kInteger, kF64, kF32, kF16, kBF16, kQuantised };

Exactness ExactnessOf(const Type& type) {
  if (!type.is_tensor()) return Exactness::kInteger;
  switch (type.dtype) {
    case DType::kF64:
      return Exactness::kF64;
    case DType::kF32:
      return Exactness::kF32;
    case DType::kF16:
      return Exactness::kF16;
    case DType::kBF16:
      return Exactness::kBF16;
    default:
      return IsFloat(type.dtype) ? Exactness::kQuantised : Exactness::kInteger;
  }
}

double RelativeFor(Exactness exactness) {
  switch (exactness) {
    case Exactness::kF64:
      return 1e-9;
    case Exactness::kF16:
      return 4e-3;
    case Exactness::kBF16:
      return 3e-2;
    case Exactness::kQuantised:
      return 2e-2;
    default:
      return 1e-4;
  }
}

// Returns the distance of neighbouring numbers between 1 and 2; 0 if the type is not a float.
double EpsilonOf(Exactness exactness) {
  switch (exactness) {
    case Exactness::kF64:
      return 0x1p-52;
    case Exactness::kF32:
      return 0x1p-23;
    case Exactness::kF16:
      return 0x1p-10;
    case Exactness::kBF16:
      return 0x1p-7;
    default:
      return 0;
  }
}

// Returns whether the op rounds to few integers. A DequantizeLinear of weights only looks like one:
// its inputs are constant.
bool Quantises(const Node& node) {
  constexpr std::string_view kOps[] = {"QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger",
                                       "MatMulInteger"};
  return node.op.starts_with("QLinear") ||
         std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

// Returns the coarsest of all values in the graphs that nodes call, since it is not known which of
// them run.
Exactness InnerExactness(const Module& module) {
  Exactness coarsest = Exactness::kConstant;
  for (const Graph& graph : module.graphs) {
    if (&graph == &module.main()) continue;
    for (const Node& node : graph.nodes) {
      if (Quantises(node)) coarsest = Exactness::kQuantised;
      for (ValueId v : node.outputs) {
        if (v != kNoValue) coarsest = std::max(coarsest, ExactnessOf(graph.value(v).type));
      }
    }
  }
  return coarsest;
}

std::vector<Exactness> ExactnessOfValues(const Module& module) {
  const Graph& graph = module.main();
  const Exactness inner = InnerExactness(module);
  std::vector<Exactness> exactness(graph.value_count(), Exactness::kConstant);
  for (ValueId v : graph.inputs) exactness[IndexOf(v)] = ExactnessOf(graph.value(v).type);
  for (const Node& node : graph.nodes) {
    Exactness coarsest = Exactness::kConstant;
    for (ValueId v : node.inputs) {
      if (v != kNoValue) coarsest = std::max(coarsest, exactness[IndexOf(v)]);
    }
    const bool only_dims = node.op == "Shape" || node.op == "Size";
    const bool state = node.domain == "msrt" && node.op == "StateRead";
    if (IsControl(node)) coarsest = std::max(coarsest, inner);
    if ((coarsest == Exactness::kConstant && !state) || only_dims) continue;
    if (Quantises(node)) coarsest = Exactness::kQuantised;
    for (ValueId v : node.outputs) {
      if (v != kNoValue)
        exactness[IndexOf(v)] = std::max(coarsest, ExactnessOf(graph.value(v).type));
    }
  }
  return exactness;
}

// Returns the step size of a value that a DequantizeLinear makes, seen through ops that only move
// elements; 0 if it has no steps.
double StepOf(const Graph& graph, const std::vector<int32_t>& producers, ValueId value) {
  constexpr std::string_view kMoves[] = {"Identity",  "Reshape", "Transpose", "Flatten", "Squeeze",
                                         "Unsqueeze", "Slice",   "Relu",      "Clip"};
  for (int32_t n = producers[IndexOf(value)]; n >= 0; n = producers[IndexOf(value)]) {
    const Node& node = graph.nodes[static_cast<size_t>(n)];
    if (node.op == "DequantizeLinear" && node.inputs.size() > 1 &&
        graph.value(node.inputs[1]).constant != nullptr) {
      const std::vector<double> scales =
          reference::Doubles(ViewOf(*graph.value(node.inputs[1]).constant));
      double largest = 0;
      for (double scale : scales) largest = std::max(largest, std::abs(scale));
      return largest;
    }
    if (std::find(std::begin(kMoves), std::end(kMoves), node.op) == std::end(kMoves) ||
        node.inputs.empty())
      return 0;
    value = node.inputs[0];
    if (value == kNoValue) return 0;
  }
  return 0;
}

}  // namespace

std::vector<Tolerance> DefaultTolerances(const Module& module) {
  constexpr double kRounding = 1.001;  // a step is itself a difference of two rounded numbers
  const Graph& graph = module.main();
  const std::vector<Exactness> exactness = ExactnessOfValues(module);
  const std::vector<int32_t> producers = graph.Producers();
  std::vector<Tolerance> tolerances;
  for (ValueId v : graph.outputs) {
    const Exactness e = exactness[IndexOf(v)];
    const Type& type = graph.value(v).type;
    const bool integer = type.is_tensor() && !IsFloat(type.dtype);
    const bool bytes = type.dtype == DType::kI8 || type.dtype == DType::kU8;
    Tolerance tolerance{.relative = integer ? 0 : RelativeFor(std::max(e, ExactnessOf(type)))};
    if (!integer) tolerance.rounding = 2 * EpsilonOf(std::max(e, ExactnessOf(type)));
    tolerance.depends_on_data = e != Exactness::kConstant;
    if (e == Exactness::kQuantised)
      tolerance.absolute = integer ? (bytes ? 1 : 0) : kRounding * StepOf(graph, producers, v);
    tolerances.push_back(tolerance);
  }
  return tolerances;
}

}  // namespace msrt
