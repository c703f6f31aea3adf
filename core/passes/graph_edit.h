// A graph whose nodes are written anew from front to back: each is kept, or others stand in its
// place. How passes over control flow put what a graph computes where it was called.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "ops/control.h"

namespace msrt {

class GraphEdit {
 public:
  // With `named_outputs` (an entry) the graph's outputs keep their own values, by whose names users
  // know them.
  GraphEdit(Graph* graph, bool named_outputs);
  // Finishes: what was not visited is gone.
  ~GraphEdit();
  GraphEdit(const GraphEdit&) = delete;
  GraphEdit& operator=(const GraphEdit&) = delete;

  size_t node_count() const { return before_.size(); }
  // Node n with what stands for its inputs now. To be visited in order.
  Node& Visit(size_t n);
  void Keep(Node node) { graph_->nodes.push_back(std::move(node)); }
  // Appends a node with one output, with the type that inference gives; kNoValue, and nothing
  // happens, if it refuses.
  ValueId Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
              AttrList attrs = {});
  // Appends the nodes of `callee`, which is another graph, for these arguments, one for each of its
  // inputs. The values that stand for its outputs; nullopt, and nothing happens, if an argument is
  // not what the callee declares or inference refuses a node.
  std::optional<std::vector<ValueId>> WriteOut(const Graph& callee,
                                               std::span<const ValueId> arguments);
  // From here on the results stand for the outputs of a node that is not kept. False, and nothing
  // happens, if their types do not agree, or an output of the graph with a name to keep is no
  // tensor.
  bool Replace(const Node& node, std::span<const ValueId> results);
  // The same for one output of a node that stays. False, and nothing happens, where the output has
  // a name to keep.
  bool ReplaceOutput(ValueId output, ValueId by);
  // Takes back what was appended since there were so many nodes.
  size_t appended() const { return graph_->nodes.size(); }
  void Undo(size_t appended) { graph_->nodes.resize(appended); }
  const Graph& graph() const { return *graph_; }
  Graph& graph() { return *graph_; }

 private:
  ValueId Current(ValueId v) const {
    return v == kNoValue || IndexOf(v) >= standing_.size() ? v : standing_[IndexOf(v)];
  }
  bool NamedOutput(ValueId v) const { return IndexOf(v) < named_.size() && named_[IndexOf(v)]; }
  bool Infer(const Node& node);
  bool CanStandFor(ValueId value, ValueId replaced) const;
  void Rename(ValueId from, ValueId to, size_t first_node);

  Graph* graph_;
  std::vector<Node> before_;
  std::vector<ValueId> standing_;  // by value: what stands for it
  std::vector<bool> named_;        // by value
  std::vector<bool> made_here_;    // by value: a node made it that was added by this edit
};

// What became of a node that calls graphs.
enum class Edited : uint8_t { kNot, kChanged, kReplaced };  // kReplaced: others stand in its place
// Goes over graph g from front to back and shows those nodes to `visit`, which may change them.
// True if anything became of any.
bool EditControl(
    Module* module, uint32_t g,
    FunctionRef<Edited(uint32_t n, Node& node, const ControlShape& shape, GraphEdit& edit)> visit);

}  // namespace msrt
