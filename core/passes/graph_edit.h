// Rewrites a graph from front to back: each node is kept or replaced by others. Passes over control
// flow use it to inline graphs at their call sites.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "ops/control.h"

namespace msrt {

class GraphEdit {
 public:
  // With `named_outputs` (an entry) the graph's outputs keep their values, since users know them by
  // name.
  GraphEdit(Graph* graph, bool named_outputs);
  // Finishes the edit: nodes that were not visited are removed.
  ~GraphEdit();
  GraphEdit(const GraphEdit&) = delete;
  GraphEdit& operator=(const GraphEdit&) = delete;

  size_t node_count() const { return before_.size(); }
  // Returns node n with the current replacements of its inputs. Nodes must be visited in order.
  Node& Visit(size_t n);
  void Keep(Node node) { graph_->nodes.push_back(std::move(node)); }
  // Appends a node with one output of the inferred type. Returns kNoValue, and changes nothing, if
  // inference fails.
  ValueId Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
              AttrList attrs = {});
  // Appends the nodes of `callee`, another graph, with one argument for each of its inputs. Returns
  // the values of its outputs; nullopt, and changes nothing, if an argument does not have the type
  // that the callee declares or inference refuses a node.
  std::optional<std::vector<ValueId>> Inline(const Graph& callee,
                                             std::span<const ValueId> arguments);
  // Replaces the outputs of a node that is not kept by `results` from here on. Returns false, and
  // changes nothing, if their types do not agree, or a named output of the graph is not a tensor.
  bool Replace(const Node& node, std::span<const ValueId> results);
  // The same for one output of a node that is kept. Returns false, and changes nothing, if the
  // output is a named output of the graph.
  bool ReplaceOutput(ValueId output, ValueId by);
  // Undo removes the nodes that were appended since appended() returned that number.
  size_t appended() const { return graph_->nodes.size(); }
  void Undo(size_t appended) { graph_->nodes.resize(appended); }
  const Graph& graph() const { return *graph_; }
  Graph& graph() { return *graph_; }

 private:
  ValueId Current(ValueId v) const {
    return v == kNoValue || IndexOf(v) >= replacement_.size() ? v : replacement_[IndexOf(v)];
  }
  bool IsNamedOutput(ValueId v) const { return IndexOf(v) < named_.size() && named_[IndexOf(v)]; }
  bool Infer(const Node& node);
  bool CanReplace(ValueId value, ValueId replaced) const;
  void RenameValue(ValueId from, ValueId to, size_t first_node);

  Graph* graph_;
  std::vector<Node> before_;
  std::vector<ValueId> replacement_;  // by value
  std::vector<bool> named_;           // by value
  std::vector<bool> made_here_;       // by value: made by a node that this edit added
};

// Outcome for a node that calls graphs. kReplaced: other nodes take its place.
enum class EditResult : uint8_t { kUnchanged, kChanged, kReplaced };

// Goes over graph g from front to back and calls `visit` for each node that calls graphs; `visit`
// may change the node. Returns whether any node was changed or replaced.
bool EditControl(
    Module* module, uint32_t g,
    FunctionRef<EditResult(uint32_t n, Node& node, const ControlShape& shape, GraphEdit& edit)>
        visit);

}  // namespace msrt
