#include "core/passes/recover_loops.h"

#include <algorithm>
#include <unordered_map>

#include "core/passes/call_graph.h"
#include "core/passes/graph_edit.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// Maximum number of graphs in which a body may end.
constexpr size_t kMaxTails = 256;

// Returns the last node if it is a branch or a call whose results are those of the graph, else
// null.
const Node* TailOf(const Graph& graph) {
  if (graph.nodes.empty() || !IsControl(graph.nodes.back()) ||
      graph.nodes.back().outputs != graph.outputs)
    return nullptr;
  const ControlShape shape = ShapeOfControl(graph.nodes.back());
  const bool branches = shape.kind == ControlKind::kIf || shape.kind == ControlKind::kSwitch;
  return branches || (shape.kind == ControlKind::kCall && !shape.graphs.empty())
             ? &graph.nodes.back()
             : nullptr;
}

// Graphs that always end by calling a header, each after the graphs that it ends in.
class Tails {
 public:
  Tails(const Module& module, uint32_t header) : module_(module), header_(header) {}

  // Collects `first` and the graphs that it ends in. Returns false if `first` does not always end
  // by calling the header.
  bool Gather(uint32_t first) {
    // Graphs, and whether all graphs that they end in were seen.
    std::vector<std::pair<uint32_t, bool>> stack = {{first, false}};
    while (!stack.empty()) {
      const auto [g, seen] = stack.back();
      stack.pop_back();
      if (seen) {
        state_[g] = kDone;
        order_.push_back(g);
        continue;
      }
      const auto state = state_.find(g);
      if (state != state_.end() && state->second == kDone) continue;
      // A cycle without the header is a separate loop, which is recovered first.
      if (state != state_.end() || state_.size() >= kMaxTails) return false;
      const Node* tail = TailOf(module_.graphs[g]);
      if (tail == nullptr) return false;
      state_[g] = kOpen;
      stack.emplace_back(g, true);
      const ControlShape shape = ShapeOfControl(*tail);
      for (uint32_t next : shape.graphs) {
        const bool again = next == header_;
        if (again && shape.kind != ControlKind::kCall)
          return false;  // the header as a branch is rare: not supported
        if (!again) stack.emplace_back(next, false);
      }
    }
    return true;
  }
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  enum State : uint8_t { kOpen, kDone };
  const Module& module_;
  const uint32_t header_;
  std::unordered_map<uint32_t, State> state_;
  std::vector<uint32_t> order_;
};

Node ControlNode(std::string_view domain, std::string_view op, std::string name,
                 std::vector<ValueId> inputs, AttrList attrs) {
  Node node;
  node.name = std::move(name);
  node.domain = domain;
  node.op = op;
  node.def = FindOp(domain, op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return node;
}

// Returns the attributes of a branch or a call with other graphs.
AttrList WithGraphs(const AttrList& attrs, const std::unordered_map<uint32_t, uint32_t>& instead) {
  AttrList changed;
  for (const Attr& attr : attrs) {
    AttrValue value = attr.value;
    if (auto* one = std::get_if<GraphRef>(&value)) one->index = instead.at(one->index);
    if (auto* many = std::get_if<std::vector<GraphRef>>(&value)) {
      for (GraphRef& g : *many) g.index = instead.at(g.index);
    }
    changed.Set(attr.name, std::move(value));
  }
  return changed;
}

class Recovery {
 public:
  Recovery(CopyBudget* budget, Module* module, uint32_t header)
      : budget_(*budget),
        module_(*module),
        header_(header),
        graphs_before_(module->graphs.size()) {}

  bool Run() {
    if (TryRecover()) return true;
    module_.graphs.resize(graphs_before_);
    return false;
  }

 private:
  bool TryRecover() {
    const Node* tail = TailOf(module_.graphs[header_]);
    if (tail == nullptr || ShapeOfControl(*tail).kind != ControlKind::kIf) return false;
    const Node branch = *tail;
    const ControlShape shape = ShapeOfControl(branch);
    for (size_t i = 0; i < 2; ++i) {
      const uint32_t body = shape.graphs[i], exit = shape.graphs[1 - i];
      if (body == header_ || body == exit) continue;
      Tails tails(module_, header_);
      if (!tails.Gather(body)) continue;
      return Build(branch, /*negated=*/i == 1, tails, body, exit);
    }
    return false;
  }

  bool Build(const Node& branch, bool negated, const Tails& tails, uint32_t body, uint32_t exit) {
    if (!Spend(tails.order())) return false;
    std::unordered_map<uint32_t, uint32_t> next;  // graph -> its copy (see MakeNext)
    for (uint32_t g : tails.order()) {
      if (!MakeNext(g, &next)) return false;
    }
    const Graph head = Head(branch, negated);
    Graph loop;
    loop.name = StrCat(module_.graphs[header_].name, "/loop");
    if (!FillBody(head, module_.graphs[next.at(body)], &loop)) return false;
    module_.graphs.push_back(std::move(loop));
    return ReplaceBranch(branch, head, static_cast<uint32_t>(module_.graphs.size() - 1), exit);
  }

  bool Spend(const std::vector<uint32_t>& tails) {
    size_t copied = 2 * module_.graphs[header_].nodes.size();
    for (uint32_t g : tails) copied += module_.graphs[g].nodes.size();
    if (copied > budget_.nodes) return false;
    budget_.nodes -= copied;
    return true;
  }

  // Adds a copy of graph g that returns the arguments of its final call of the header instead of
  // calling it.
  bool MakeNext(uint32_t g, std::unordered_map<uint32_t, uint32_t>* next) {
    Graph graph = module_.graphs[g];
    Node& tail = graph.nodes.back();
    const ControlShape shape = ShapeOfControl(tail);
    graph.name += "/next";
    if (shape.graphs[0] == header_) {
      graph.outputs = tail.inputs;
      graph.nodes.pop_back();
    } else {
      tail.attrs = WithGraphs(tail.attrs, *next);
      tail.outputs.clear();
      for (size_t i = 0; i < module_.graphs[header_].inputs.size(); ++i)
        tail.outputs.push_back(graph.AddValue("", UndeclaredType()));
      if (!TypeOutputs(&graph, &tail)) return false;
      graph.outputs = tail.outputs;
    }
    next->emplace(g, static_cast<uint32_t>(module_.graphs.size()));
    module_.graphs.push_back(std::move(graph));
    return true;
  }

  bool TypeOutputs(Graph* graph, Node* node) const {
    const auto types = ResultsOf(module_, *graph, *node);
    if (!types.ok() || types->size() < node->outputs.size()) return false;
    for (size_t i = 0; i < node->outputs.size(); ++i)
      graph->value(node->outputs[i]).type = (*types)[i];
    return true;
  }

  // Returns the header up to its branch. Its outputs are the condition and the arguments of the
  // branches.
  Graph Head(const Node& branch, bool negated) const {
    Graph head = module_.graphs[header_];
    head.nodes.pop_back();
    head.outputs = branch.inputs;
    if (negated) {
      Node negation = ControlNode("", "Not", StrCat(branch.name, "/not"), {branch.inputs[0]}, {});
      negation.outputs = {head.AddValue(negation.name, head.value(branch.inputs[0]).type)};
      head.outputs[0] = negation.outputs[0];
      head.nodes.push_back(std::move(negation));
    }
    return head;
  }

  static bool FillBody(const Graph& head, const Graph& next, Graph* loop) {
    loop->AddInput("", Type::Tensor(DType::kI64, {}));
    loop->AddInput("", Type::Tensor(DType::kBool, {}));
    std::vector<ValueId> carried;
    for (size_t i = 1; i < head.outputs.size(); ++i) {
      const Type& type = head.value(head.outputs[i]).type;
      if (!type.is_tensor()) return false;
      carried.push_back(loop->AddInput("", type));
    }
    GraphEdit edit(loop, /*named_outputs=*/false);
    const auto arguments = edit.Inline(next, carried);
    if (!arguments) return false;
    const auto results = edit.Inline(head, *arguments);
    if (!results) return false;
    for (size_t i = 0; i < carried.size(); ++i) {
      const Type& given = loop->value((*results)[i + 1]).type;
      const auto merged = MergeTypes(given, loop->value(carried[i]).type);
      if (!merged.ok() || !(*merged == given))
        return false;  // the next iteration would get another type
    }
    loop->outputs = *results;
    return true;
  }

  // Makes the header run its nodes up to the branch, then the loop, then the other branch.
  bool ReplaceBranch(const Node& branch, const Graph& head, uint32_t loop, uint32_t exit) {
    Graph graph = head;
    std::vector<ValueId> inputs = head.outputs;
    inputs.insert(inputs.begin(), kNoValue);
    const auto carried = static_cast<int64_t>(inputs.size()) - 2;
    Node node = ControlNode("", "Loop", StrCat(branch.name, "/loop"), std::move(inputs),
                            {{"body", GraphRef{loop}}, {"carried", carried}});
    for (int64_t i = 0; i < carried; ++i)
      node.outputs.push_back(graph.AddValue("", UndeclaredType()));
    if (!TypeOutputs(&graph, &node)) return false;
    Node call = ControlNode("msrt", "Call", branch.name, node.outputs, {{"graph", GraphRef{exit}}});
    call.outputs = branch.outputs;
    graph.nodes.push_back(std::move(node));
    graph.nodes.push_back(std::move(call));
    graph.outputs = branch.outputs;
    const Graph& callee = module_.graphs[exit];
    for (size_t i = 0; i < branch.outputs.size(); ++i) {
      // The declared types of the results may not hold for this branch.
      if (!MergeTypes(graph.value(branch.outputs[i]).type, callee.value(callee.outputs[i]).type)
               .ok())
        return false;
    }
    module_.graphs[header_] = std::move(graph);
    return true;
  }

  CopyBudget& budget_;
  Module& module_;
  const uint32_t header_;
  const size_t graphs_before_;
};

}  // namespace

Result<bool> RecoverLoops(const PassContext& context, Module* module) {
  CopyBudget own;
  CopyBudget* const budget = context.copying != nullptr ? context.copying : &own;
  const CallGraph calls(*module);
  bool changed = false;
  for (uint32_t g : calls.callees_first()) {
    if (calls.recursive(g)) changed = Recovery(budget, module, g).Run() || changed;
  }
  return changed;
}

}  // namespace msrt
