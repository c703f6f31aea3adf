#include "core/delegate/typical_results.h"

#include <algorithm>
#include <optional>

#include "core/delegate/callee_types.h"

namespace msrt {
namespace {

constexpr int kMaxDepth = 8;

// The number in a condition or index that is known.
std::optional<int64_t> KnownNumber(const GraphFacts& facts, ValueId value) {
  const ConstTensor* data = value == kNoValue ? nullptr : facts.known[IndexOf(value)];
  if (data == nullptr || data->dims.elements() != 1) return std::nullopt;
  if (data->dtype == DType::kBool) return data->As<uint8_t>()[0] != 0;
  return IntValues(data->dtype, data->bytes.data(), 1)[0];
}

// The graphs that the node may call, in the order in which to try them.
std::vector<uint32_t> GraphsToTry(const Node& node, const ControlShape& shape,
                                  const GraphFacts& facts) {
  if (shape.kind == ControlKind::kCall) return shape.graphs;
  if (shape.kind != ControlKind::kIf && shape.kind != ControlKind::kSwitch) return {};
  const auto number = KnownNumber(facts, node.inputs[0]);
  if (!number) return shape.graphs;
  if (shape.kind == ControlKind::kIf) return {shape.graphs[*number != 0 ? 0 : 1]};
  const auto count = static_cast<int64_t>(shape.graphs.size());
  const int64_t index = *number < 0 ? *number + count : *number;
  if (index < 0 || index >= count) return {};
  return {shape.graphs[static_cast<size_t>(index)]};
}

class TypicalTypeInference {
 public:
  TypicalTypeInference(const Module& module, const Evaluator& evaluator, size_t* nodes_left)
      : module_(module), evaluator_(evaluator), nodes_left_(*nodes_left) {}

  std::vector<Type> ResultsOf(const Node& node, const GraphFacts& facts, int depth) {
    if (!IsControl(node) || depth >= kMaxDepth) return {};
    const ControlShape shape = ShapeOfControl(node);
    for (const uint32_t graph : GraphsToTry(node, shape, facts)) {
      std::vector<Type> results =
          ResultsOf(module_.graphs[graph], node, shape.leading, facts, depth);
      if (!results.empty()) return results;
    }
    return {};
  }

 private:
  std::vector<Type> ResultsOf(const Graph& callee, const Node& node, size_t leading,
                              const GraphFacts& outer, int depth) {
    if (node.inputs.size() != leading + callee.inputs.size()) return {};
    GraphFacts facts(callee);
    for (size_t i = 0; i < callee.inputs.size(); ++i) {
      const ValueId argument = node.inputs[leading + i];
      if (argument == kNoValue) return {};
      facts.types[IndexOf(callee.inputs[i])] = outer.types[IndexOf(argument)];
      facts.known[IndexOf(callee.inputs[i])] = outer.known[IndexOf(argument)];
    }
    const auto infer_control = [&](const Node& inner, const GraphFacts& now) {
      return ResultsOf(inner, now, depth + 1);
    };
    std::vector<Type> results =
        InferOutputTypes(callee, std::move(facts), evaluator_, &nodes_left_, infer_control);
    const bool definite =
        std::all_of(results.begin(), results.end(), [](const Type& t) { return t.concrete(); });
    return definite ? results : std::vector<Type>();
  }

  const Module& module_;
  const Evaluator& evaluator_;
  size_t& nodes_left_;
};

}  // namespace

std::vector<Type> TypicalResults(const Module& module, const Node& node, const GraphFacts& facts,
                                 const Evaluator& evaluator, size_t* nodes_left) {
  return TypicalTypeInference(module, evaluator, nodes_left).ResultsOf(node, facts, 0);
}

}  // namespace msrt
