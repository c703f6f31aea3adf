#include "core/passes/drop_dead_carried.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/passes/call_graph.h"
#include "core/passes/loop_shape.h"

namespace msrt {
namespace {

// Finds the values of a graph that are needed for wanted values and for effects.
class Liveness {
 public:
  Liveness(const Graph& graph, const CallGraph& calls)
      : graph_(graph), producers_(graph.Producers()), live_(graph.value_count()) {
    input_.resize(graph.value_count(), kNoInput);
    for (size_t i = 0; i < graph.inputs.size(); ++i) input_[IndexOf(graph.inputs[i])] = i;
    for (const Node& node : graph.nodes) {
      if (!calls.IsPure(node)) WantAll(node.inputs);
    }
  }
  void Want(ValueId v) {
    if (v == kNoValue || live_[IndexOf(v)]) return;
    live_[IndexOf(v)] = true;
    if (input_[IndexOf(v)] == kNoInput) waiting_.push_back(v);
    else live_inputs_.push_back(input_[IndexOf(v)]);
  }
  void WantAll(std::span<const ValueId> values) {
    for (ValueId v : values) Want(v);
  }
  void Propagate() {
    while (!waiting_.empty()) {
      const int32_t n = producers_[IndexOf(waiting_.back())];
      waiting_.pop_back();
      if (n >= 0) WantAll(graph_.nodes[static_cast<size_t>(n)].inputs);
    }
  }
  bool live(ValueId v) const { return live_[IndexOf(v)]; }
  // Returns the inputs of the graph that were found to be live since the last call.
  std::vector<size_t> TakeLiveInputs() { return std::exchange(live_inputs_, {}); }

 private:
  static constexpr size_t kNoInput = SIZE_MAX;
  const Graph& graph_;
  const std::vector<int32_t> producers_;
  std::vector<bool> live_;     // by value
  std::vector<size_t> input_;  // by value: which input of the graph it is
  std::vector<ValueId> waiting_;
  std::vector<size_t> live_inputs_;
};

template <typename T>
void KeepOnly(const std::vector<bool>& keep, size_t from, std::vector<T>* list) {
  size_t next = from;
  for (size_t i = from; i < list->size(); ++i) {
    if (i - from < keep.size() && !keep[i - from]) continue;
    (*list)[next++] = (*list)[i];
  }
  list->resize(next);
}

bool All(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), false) == flags.end();
}

class Dropping {
 public:
  explicit Dropping(Module* module) : module_(*module), calls_(*module) {}

  bool Run() {
    bool changed = RemoveNodes();
    if (changed) calls_ = CallGraph(module_);
    // Callers first: removing an unread result may leave other nodes without a use.
    for (size_t i = calls_.callees_first().size(); i-- > 0;) {
      const uint32_t g = calls_.callees_first()[i];
      Graph& graph = module_.graphs[g];
      if (std::none_of(graph.nodes.begin(), graph.nodes.end(), IsControl)) continue;
      const std::vector<uint32_t> uses = graph.UseCounts();
      for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
        Node& node = graph.nodes[n];
        if (!IsControl(node)) continue;
        const ControlShape shape = ShapeOfControl(node);
        if (shape.graphs.empty() || !calls_.OwnsGraphs(g, n, shape)) continue;
        changed = (IsLoop(shape) ? TrimLoop(uses, shape, &node) : TrimCall(uses, shape, &node)) ||
                  changed;
      }
    }
    RemoveNodes();  // nodes that computed dropped values
    return RemoveUncalledGraphs(&module_) || changed;
  }

 private:
  bool RemoveNodes() {
    bool changed = false;
    for (uint32_t g : calls_.callees_first()) {
      Graph& graph = module_.graphs[g];
      Liveness liveness(graph, calls_);
      liveness.WantAll(graph.outputs);
      liveness.Propagate();
      const auto removed = std::erase_if(graph.nodes, [&](const Node& node) {
        return calls_.IsPure(node) &&
               std::none_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId v) { return v != kNoValue && liveness.live(v); });
      });
      changed = changed || removed != 0;
    }
    return changed;
  }

  // Returns for each result of the called graphs, the node's outputs first, whether it is read.
  static std::vector<bool> Wanted(const Node& node, const std::vector<uint32_t>& uses,
                                  size_t results) {
    std::vector<bool> wanted(results);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      wanted[i] = node.outputs[i] != kNoValue && uses[IndexOf(node.outputs[i])] != 0;
    return wanted;
  }

  std::vector<uint32_t> DistinctGraphs(const ControlShape& shape) const {
    std::vector<uint32_t> graphs = shape.graphs;
    std::sort(graphs.begin(), graphs.end());
    graphs.erase(std::unique(graphs.begin(), graphs.end()), graphs.end());
    return graphs;
  }

  // Trims a branch or a call.
  bool TrimCall(const std::vector<uint32_t>& uses, const ControlShape& shape, Node* node) {
    const size_t offset = InputOffset(shape);
    const std::vector<bool> wanted =
        Wanted(*node, uses, module_.graphs[shape.graphs[0]].outputs.size());
    std::vector<bool> used(node->inputs.size() - offset);
    const std::vector<uint32_t> graphs = DistinctGraphs(shape);
    for (uint32_t g : graphs) {
      Graph& graph = module_.graphs[g];
      KeepOnly(wanted, 0, &graph.outputs);
      MarkUsed(graph, &used);
    }
    for (uint32_t g : graphs) KeepOnly(used, 0, &module_.graphs[g].inputs);
    KeepOnly(wanted, 0, &node->outputs);
    KeepOnly(used, offset, &node->inputs);
    return !All(wanted) || !All(used);
  }

  void MarkUsed(const Graph& graph, std::vector<bool>* used) const {
    Liveness liveness(graph, calls_);
    liveness.WantAll(graph.outputs);
    liveness.Propagate();
    for (size_t i = 0; i < used->size(); ++i)
      (*used)[i] = (*used)[i] || liveness.live(graph.inputs[i]);
  }

  bool TrimLoop(const std::vector<uint32_t>& uses, const ControlShape& shape, Node* node) {
    const LoopGraphs loop = GraphsOf(&module_, shape);
    if (loop.condition == loop.body) return false;
    std::vector<bool> wanted =
        Wanted(*node, uses, loop.body->outputs.size() - shape.body_extra_outputs());
    Liveness in_body(*loop.body, calls_);
    if (shape.body_extra_outputs() != 0) in_body.Want(loop.body->outputs[0]);
    for (size_t i = shape.carried; i < wanted.size(); ++i) {
      if (wanted[i]) in_body.Want(loop.body->outputs[shape.body_extra_outputs() + i]);
    }
    std::optional<Liveness> in_condition;
    if (loop.condition != nullptr) {
      in_condition.emplace(*loop.condition, calls_);
      in_condition->WantAll(loop.condition->outputs);
      in_condition->Propagate();
    }
    PropagateThroughCarried(loop, shape, in_condition ? &*in_condition : nullptr, &in_body,
                            &wanted);
    std::vector<bool> used(node->inputs.size() - shape.leading, true);
    for (size_t i = 0; i < used.size(); ++i) {
      const bool captured = i >= shape.carried + shape.scan_inputs;
      if (i < shape.carried) used[i] = wanted[i];
      else if (captured)
        used[i] = in_body.live(loop.body->inputs[shape.body_extra_inputs() + i]) ||
                  (in_condition && in_condition->live(loop.condition->inputs[i]));
    }
    if (All(used) && All(wanted)) return false;
    DropAxes(wanted, shape, node);
    KeepOnly(used, shape.body_extra_inputs(), &loop.body->inputs);
    KeepOnly(wanted, shape.body_extra_outputs(), &loop.body->outputs);
    if (loop.condition != nullptr) KeepOnly(used, 0, &loop.condition->inputs);
    KeepOnly(used, shape.leading, &node->inputs);
    KeepOnly(wanted, 0, &node->outputs);
    const auto carried =
        std::count(wanted.begin(), wanted.begin() + static_cast<ptrdiff_t>(shape.carried), true);
    node->attrs.Set("carried", static_cast<int64_t>(carried));
    return true;
  }

  // A carried value is wanted if the end of the loop, its condition or the next value of another
  // wanted value depends on it.
  static void PropagateThroughCarried(const LoopGraphs& loop, const ControlShape& shape,
                                      Liveness* in_condition, Liveness* in_body,
                                      std::vector<bool>* wanted) {
    const auto want = [&](size_t i) {
      (*wanted)[i] = true;
      in_body->Want(loop.body->outputs[shape.body_extra_outputs() + i]);
    };
    for (size_t i = 0; i < shape.carried; ++i) {
      if ((*wanted)[i]) want(i);
    }
    if (in_condition != nullptr) {
      for (size_t i : in_condition->TakeLiveInputs()) {
        if (i < shape.carried) want(i);
      }
    }
    for (;;) {
      in_body->Propagate();
      const std::vector<size_t> live_inputs = in_body->TakeLiveInputs();
      if (live_inputs.empty()) return;
      for (size_t i : live_inputs) {
        if (i >= shape.body_extra_inputs() && i - shape.body_extra_inputs() < shape.carried)
          want(i - shape.body_extra_inputs());
      }
    }
  }

  // Removes the axes and directions of dropped scanned results.
  static void DropAxes(const std::vector<bool>& wanted, const ControlShape& shape, Node* node) {
    for (std::string_view name : {"scan_output_axes", "scan_output_directions"}) {
      const AttrValue* given = node->attrs.Find(name);
      if (given == nullptr) continue;
      auto list = std::get<std::vector<int64_t>>(*given);
      list.resize(wanted.size() - shape.carried);
      KeepOnly({wanted.begin() + static_cast<ptrdiff_t>(shape.carried), wanted.end()}, 0, &list);
      node->attrs.Set(name, std::move(list));
    }
  }

  Module& module_;
  CallGraph calls_;
};

}  // namespace

Result<bool> DropDeadCarried(const PassContext&, Module* module) { return Dropping(module).Run(); }

}  // namespace msrt
