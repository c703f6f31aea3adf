#include "tools/msconvert/mindir/export_failure.h"

#include <optional>

#include "ops/builder.h"
#include "ops/control.h"

namespace msrt::mindir_export {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxNodes = 100'000;

bool IsOpen(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (ValueId v : node.outputs) {
      if (v != kNoValue && !graph.value(v).type.concrete()) return true;
    }
  }
  return false;
}

// The nodes of a graph as one list, with branches that constants decide inlined, so that inference
// sees the same nodes as a run.
class Trial {
 public:
  explicit Trial(const Module& module) : module_(module) {}
  Graph& graph() { return trial_; }

  // Returns kUnsupported if the graph is too deep or too long to be tried. Other errors are those
  // of a run.
  Result<std::vector<ValueId>> Write(const Graph& graph, const std::vector<ValueId>& arguments,
                                     int depth) {
    if (depth > kMaxDepth) return Unsupported("nested too deeply");
    std::vector<ValueId> values(graph.value_count(), kNoValue);
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      values[IndexOf(graph.inputs[i])] = arguments[i];
    const auto of = [&](ValueId v) {
      if (v == kNoValue) return v;
      ValueId& own = values[IndexOf(v)];
      if (own == kNoValue) own = Copy(graph.value(v));  // a constant
      return own;
    };
    for (const Node& node : graph.nodes) {
      if (++nodes_ > kMaxNodes) return Unsupported("too many nodes");
      std::vector<ValueId> inputs;
      for (ValueId v : node.inputs) inputs.push_back(of(v));
      MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                            WriteNode(graph, node, std::move(inputs), depth));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != kNoValue) values[IndexOf(node.outputs[i])] = outputs[i];
      }
    }
    std::vector<ValueId> results;
    for (ValueId v : graph.outputs) results.push_back(of(v));
    return results;
  }

  ValueId Copy(const Value& value) {
    const ValueId copy = trial_.AddValue("", value.type);
    trial_.value(copy).constant = value.constant;
    return copy;
  }

 private:
  Result<std::vector<ValueId>> WriteNode(const Graph& graph, const Node& node,
                                         std::vector<ValueId> inputs, int depth) {
    if (!IsControl(node) && node.def != nullptr) {
      return GraphBuilder(&trial_).Add(node.domain, node.op, node.name, std::move(inputs),
                                       node.attrs, node.outputs.size());
    }
    if (const auto branch = Decided(node, inputs)) {
      inputs.erase(inputs.begin());
      return Write(module_.graphs[*branch], inputs, depth + 1);
    }
    std::vector<ValueId> outputs;  // with their declared types
    for (ValueId v : node.outputs)
      outputs.push_back(v == kNoValue ? v : trial_.AddValue("", graph.value(v).type));
    return outputs;
  }

  std::optional<uint32_t> Decided(const Node& node, const std::vector<ValueId>& inputs) const {
    if (!IsControl(node)) return std::nullopt;
    const ControlShape shape = ShapeOfControl(node);
    if (shape.kind != ControlKind::kIf) return std::nullopt;
    const ConstTensor* condition = trial_.value(inputs[0]).constant.get();
    if (condition == nullptr || condition->dims.elements() != 1) return std::nullopt;
    return shape.graphs[condition->bytes[0] != std::byte{0} ? 0 : 1];
  }

  const Module& module_;
  Graph trial_;
  size_t nodes_ = 0;
};

}  // namespace

std::string CertainFailure(const Module& module, uint32_t graph, const Graph& caller,
                           std::span<const ValueId> arguments) {
  if (!IsOpen(module.graphs[graph])) return {};  // validation has seen that everything fits
  Trial trial(module);
  std::vector<ValueId> given;
  for (ValueId v : arguments) given.push_back(trial.Copy(caller.value(v)));
  const auto results = trial.Write(module.graphs[graph], given, 0);
  return results.ok() || results.status().code() == Code::kUnsupported ? std::string()
                                                                       : results.status().message();
}

}  // namespace msrt::mindir_export
