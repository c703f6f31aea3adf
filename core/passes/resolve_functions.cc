#include "core/passes/resolve_functions.h"

#include <algorithm>
#include <unordered_map>

#include "core/passes/call_graph.h"
#include "core/passes/graph_edit.h"
#include "core/passes/loop_shape.h"
#include "ops/registry.h"

namespace msrt {
namespace {

bool IsFunction(const Graph& graph, ValueId v) {
  return v != kNoValue && graph.value(v).type.kind == TypeKind::kFunction;
}

std::vector<uint32_t> Distinct(std::vector<uint32_t> graphs) {
  std::sort(graphs.begin(), graphs.end());
  graphs.erase(std::unique(graphs.begin(), graphs.end()), graphs.end());
  return graphs;
}

class Resolving {
 public:
  explicit Resolving(Module* module)
      : module_(*module), calls_(*module), first_nodes_(module->graphs.size()) {}

  bool Run() {
    for (uint32_t g : calls_.callees_first()) InGraph(g);
    // Done last, so that nodes keep the positions that calls_ refers to.
    for (uint32_t g = 0; g < first_nodes_.size(); ++g) {
      std::vector<Node>& nodes = module_.graphs[g].nodes;
      nodes.insert(nodes.begin(), first_nodes_[g].begin(), first_nodes_[g].end());
    }
    return changed_;
  }

 private:
  void InGraph(uint32_t g) {
    Graph& graph = module_.graphs[g];
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(), IsControl)) return;
    const bool entry =
        std::find(module_.entries.begin(), module_.entries.end(), g) != module_.entries.end();
    const std::vector<uint32_t> uses = graph.UseCounts();
    const std::vector<bool> called = OnlyCalled(graph, uses);
    std::unordered_map<uint32_t, Node> choices, partials;  // by the function that they make
    GraphEdit edit(&graph, entry);
    for (uint32_t n = 0; n < edit.node_count(); ++n) {
      Node& node = edit.Visit(n);
      if (!IsControl(node)) {
        edit.Keep(std::move(node));
        continue;
      }
      const ControlShape shape = ShapeOfControl(node);
      const bool owner = !shape.graphs.empty() && calls_.OwnsGraphs(g, n, shape);
      if (owner && Chooses(graph, node, shape) && called[IndexOf(node.outputs[0])]) {
        choices.emplace(IndexOf(node.outputs[0]), std::move(node));
        continue;
      }
      if (shape.kind == ControlKind::kPartial) partials.emplace(IndexOf(node.outputs[0]), node);
      const auto choice =
          shape.graphs.empty() ? choices.find(IndexOf(node.inputs[0])) : choices.end();
      if (choice != choices.end()) node = CallInBranches(graph, choice->second, node);
      if (owner || choice != choices.end()) MovePartials(graph, partials, &node);
      edit.Keep(std::move(node));
    }
  }

  // Whether a branch only chooses a function, so that it can be delayed until the call.
  bool Chooses(const Graph& graph, const Node& node, const ControlShape& shape) const {
    const bool branches = shape.kind == ControlKind::kIf || shape.kind == ControlKind::kSwitch;
    return branches && node.outputs.size() == 1 && IsFunction(graph, node.outputs[0]) &&
           calls_.IsPure(node);
  }

  // Returns for each value whether it is a function whose only use is one call.
  static std::vector<bool> OnlyCalled(const Graph& graph, const std::vector<uint32_t>& uses) {
    std::vector<bool> called(graph.value_count());
    for (const Node& node : graph.nodes) {
      const bool call = IsControl(node) && ShapeOfControl(node).kind == ControlKind::kCall &&
                        node.attrs.Find("graph") == nullptr;
      if (call && uses[IndexOf(node.inputs[0])] == 1) called[IndexOf(node.inputs[0])] = true;
    }
    return called;
  }

  // Moves the call into the branches that choose the function. Returns the new branch node.
  Node CallInBranches(const Graph& graph, const Node& choice, const Node& call) {
    const Type function = graph.value(call.inputs[0]).type;
    for (uint32_t b : Distinct(ShapeOfControl(choice).graphs)) {
      Graph& branch = module_.graphs[b];
      Node inner = call;
      inner.inputs = {branch.outputs[0]};
      inner.outputs.clear();
      for (const Type& type : function.signature->parameters)
        inner.inputs.push_back(branch.AddInput("", type));
      for (const Type& type : function.signature->results)
        inner.outputs.push_back(branch.AddValue("", type));
      branch.outputs = inner.outputs;
      branch.nodes.push_back(std::move(inner));
    }
    Node node = choice;
    node.name = call.name;
    node.inputs.insert(node.inputs.end(), call.inputs.begin() + 1, call.inputs.end());
    node.outputs = call.outputs;
    changed_ = true;
    return node;
  }

  // Moves the creation of functions that the node passes to its graphs into these graphs.
  void MovePartials(const Graph& graph, const std::unordered_map<uint32_t, Node>& partials,
                    Node* node) {
    const ControlShape shape = ShapeOfControl(*node);
    const size_t handed = node->inputs.size();
    for (size_t i = shape.captured_from(); i < handed; ++i) {
      const auto partial = IsFunction(graph, node->inputs[i])
                               ? partials.find(IndexOf(node->inputs[i]))
                               : partials.end();
      if (partial == partials.end()) continue;
      const std::vector<uint32_t> graphs = Distinct(shape.graphs);
      // Callee inputs have the order of the node's inputs, except for those that only one of them
      // has.
      const size_t input = i - shape.leading + shape.body_extra_inputs();
      const auto uses = [&](uint32_t g) {
        return module_.graphs[g].UseCounts()[IndexOf(module_.graphs[g].inputs[input])] != 0;
      };
      if (std::none_of(graphs.begin(), graphs.end(), uses)) continue;
      node->inputs.insert(node->inputs.end(), partial->second.inputs.begin(),
                          partial->second.inputs.end());
      for (uint32_t g : graphs) MakeInside(graph, partial->second, input, g);
      changed_ = true;
    }
  }

  void MakeInside(const Graph& caller, Node partial, size_t input, uint32_t g) {
    Graph& graph = module_.graphs[g];
    for (ValueId& v : partial.inputs) v = graph.AddInput("", caller.value(v).type);
    const ValueId function = graph.AddValue(partial.name, graph.value(graph.inputs[input]).type);
    partial.outputs = {function};
    graph.ReplaceUses(graph.inputs[input], function);
    first_nodes_[g].push_back(std::move(partial));
  }

  Module& module_;
  const CallGraph calls_;
  std::vector<std::vector<Node>> first_nodes_;  // by graph: nodes to insert before all others
  bool changed_ = false;
};

}  // namespace

bool ResolveFunctions(Module* module) { return Resolving(module).Run(); }

}  // namespace msrt
