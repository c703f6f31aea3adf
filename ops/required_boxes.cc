#include "ops/required_boxes.h"

#include "ops/resolve_space.h"

namespace msrt {
namespace {

bool AllConcrete(const OpView& op) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && !op.input(i).concrete()) return false;
  }
  for (size_t o = 0; o < op.output_count(); ++o) {
    if (op.has_output(o) && !op.output(o).concrete()) return false;
  }
  return true;
}

// These have consequences beyond their outputs.
bool AlwaysRuns(const Node& node) {
  if (node.def == nullptr) return false;
  const Effect effect = node.def->effect;
  return effect == Effect::kState || effect == Effect::kComm || effect == Effect::kControl;
}

// One walk over the nodes, last first.
class Walk {
 public:
  explicit Walk(const GraphSpaces& spaces) : spaces_(spaces) {
    result_.values.resize(spaces.graph().value_count());
    result_.pieces.resize(spaces.graph().nodes.size());
  }

  Status AskFor(std::span<const Box> outputs) {
    const Graph& graph = spaces_.graph();
    if (outputs.size() != graph.outputs.size())
      return InvalidArgument(outputs.size(), " boxes for ", graph.outputs.size(), " graph outputs");
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Box whole = WholeOf(graph.outputs[o]);
      if (outputs[o].rank() != whole.rank() || !Contains(whole, outputs[o]))
        return InvalidArgument("box ", outputs[o], " is not part of graph output ", o, ", ", whole);
      Need(graph.outputs[o], outputs[o]);
    }
    return OkStatus();
  }

  RequiredBoxes Run() {
    for (size_t n = spaces_.graph().nodes.size(); n-- > 0;) Visit(n);
    return std::move(result_);
  }

 private:
  // Lists and functions have no parts: rank 0.
  Box WholeOf(ValueId value) const {
    const Type& type = spaces_.facts().types[IndexOf(value)];
    return type.concrete() ? Box::Whole(type.dims) : Box();
  }

  void Need(ValueId value, const Box& box) {
    if (value == kNoValue || box.empty()) return;
    std::optional<Box>& needed = result_.values[IndexOf(value)];
    needed = needed ? Hull(*needed, box) : box;
  }

  void Visit(size_t n) {
    const Node& node = spaces_.graph().nodes[n];
    std::vector<std::optional<Box>> outputs;
    bool used = AlwaysRuns(node);
    for (ValueId v : node.outputs) {
      outputs.push_back(v == kNoValue ? std::nullopt : result_.values[IndexOf(v)]);
      used = used || outputs.back();
    }
    if (!used) return;
    const ResolvedSpace* space = spaces_.of_node(n);
    if (space == nullptr) {
      result_.pieces[n] = Box();
      for (ValueId v : node.inputs) {
        if (v != kNoValue) Need(v, WholeOf(v));
      }
      return;
    }
    result_.pieces[n] = PieceFor(*space, outputs);
    const std::vector<Box> inputs = InputBoxes(*space, *result_.pieces[n]);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!space->inputs[i].dropped) Need(node.inputs[i], inputs[i]);
    }
  }

  const GraphSpaces& spaces_;
  RequiredBoxes result_;
};

}  // namespace

Result<GraphSpaces> GraphSpaces::Resolve(const Graph& graph, const GraphFacts& facts) {
  GraphSpaces spaces(graph, facts);
  for (const Node& node : graph.nodes) {
    const NodeView& view = *spaces.views_.emplace_back(std::make_unique<NodeView>(node, facts));
    auto& resolved = spaces.spaces_.emplace_back();
    if (node.def == nullptr || node.def->space == nullptr || AlwaysRuns(node) ||
        !AllConcrete(view.op()))
      continue;
    auto space = ResolveSpace(*node.def, view.op());
    if (space.ok()) resolved = std::make_unique<ResolvedSpace>(*std::move(space));
    else if (space.status().code() != Code::kUnsupported) return std::move(space).status();
  }
  return spaces;
}

Result<RequiredBoxes> FindRequiredBoxes(const GraphSpaces& spaces, std::span<const Box> outputs) {
  Walk walk(spaces);
  MSRT_RETURN_IF_ERROR(walk.AskFor(outputs));
  return walk.Run();
}

}  // namespace msrt
