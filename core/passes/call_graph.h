// Call graph of a module: the call sites of each graph, reachability from the entries, recursion
// and side effects. Passes that change control flow read it. It describes the module at the time of
// its construction.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/control.h"

namespace msrt {

// A node that calls a graph, and the position of that graph in its ControlShape.
struct CallSite {
  uint32_t graph = 0;
  uint32_t node = 0;
  uint32_t position = 0;
  bool operator==(const CallSite&) const = default;
};

class CallGraph {
 public:
  explicit CallGraph(const Module& module);

  bool reachable(uint32_t graph) const { return info_[graph].reachable; }
  // Returns the calls from reachable graphs.
  const std::vector<CallSite>& sites(uint32_t graph) const { return info_[graph].sites; }
  // Its inputs and outputs must not change: it is an entry, or is called through a function or by
  // an unknown op.
  bool has_fixed_signature(uint32_t graph) const { return info_[graph].fixed_signature; }
  // Has no side effects.
  bool pure(uint32_t graph) const { return info_[graph].pure; }
  // Is on a cycle of calls, or on a path between two cycles.
  bool recursive(uint32_t graph) const { return info_[graph].recursive; }
  // Reachable graphs, each after those it calls; recursive ones at the end.
  const std::vector<uint32_t>& callees_first() const { return callees_first_; }
  // Whether the node is the only caller of these graphs, and none of them has a fixed signature.
  // Requires IsControl.
  bool OwnsGraphs(uint32_t graph, uint32_t node, const ControlShape& shape) const;
  // Whether the node can be removed if none of its outputs is used.
  bool IsPure(const Node& node) const;

 private:
  struct GraphInfo {
    std::vector<CallSite> sites;
    bool reachable = false, fixed_signature = false, pure = true, recursive = true;
  };
  void FindReachable(const Module& module);
  void PropagateEffects();
  void OrderGraphs(const Module& module);

  std::vector<GraphInfo> info_;
  std::vector<uint32_t> callees_first_;
};

// Returns all graphs that the attributes of a node refer to, also for unknown ops.
std::vector<uint32_t> GraphsNamedBy(const Node& node);

// Removes unreachable graphs: they would keep the signatures of the graphs they call from changing.
// Returns whether there were any.
bool RemoveUncalledGraphs(Module* module);

// Returns the offset of callee inputs: input i of the callee is node input i + offset, for captured
// values and arguments.
inline size_t InputOffset(const ControlShape& shape) {
  return shape.kind == ControlKind::kIf || shape.kind == ControlKind::kSwitch ? 1 : 0;
}

}  // namespace msrt
