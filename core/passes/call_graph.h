// Who calls whom in a module: the places from which each graph is called, what is reached from the
// entries, and whether a call can do more than compute. Passes that change control flow read it; it
// describes the module as it was when it was made.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/control.h"

namespace msrt {

// A node that names a graph, and which of the graphs of its ControlShape that is.
struct CallSite {
  uint32_t graph = 0;
  uint32_t node = 0;
  uint32_t position = 0;
  bool operator==(const CallSite&) const = default;
};

class CallGraph {
 public:
  explicit CallGraph(const Module& module);

  bool reachable(uint32_t graph) const { return about_[graph].reachable; }
  // Calls from graphs that are reachable.
  const std::vector<CallSite>& sites(uint32_t graph) const { return about_[graph].sites; }
  // Its inputs and outputs must stay what they are: an entry, or a graph that is called through a
  // function or by an op that we do not know.
  bool open(uint32_t graph) const { return about_[graph].open; }
  // Running it changes nothing but its results.
  bool pure(uint32_t graph) const { return about_[graph].pure; }
  // Lies on a circle of calls, or between two.
  bool recursive(uint32_t graph) const { return about_[graph].recursive; }
  // Reachable graphs, each after those it calls; recursive ones at the end.
  const std::vector<uint32_t>& callees_first() const { return callees_first_; }
  // Whether the node is the only one that calls these graphs, and none of them is open. Requires
  // IsControl.
  bool OwnsGraphs(uint32_t graph, uint32_t node, const ControlShape& shape) const;
  // Whether the node can be left out when nobody wants what it gives.
  bool IsPure(const Node& node) const;

 private:
  struct About {
    std::vector<CallSite> sites;
    bool reachable = false, open = false, pure = true, recursive = true;
  };
  void Reach(const Module& module);
  void SpreadEffects();
  void Order(const Module& module);

  std::vector<About> about_;
  std::vector<uint32_t> callees_first_;
};

// All graphs that a node names, of ops that are known and of others.
std::vector<uint32_t> GraphsNamedBy(const Node& node);

// Graphs that no entry leads to still name others, whose inputs and outputs can only change once
// those are gone. True if there were any.
bool RemoveUncalledGraphs(Module* module);

// Callee input i is node input i + this, where it is handed on as it is (captured values and
// arguments).
inline size_t InputOffset(const ControlShape& shape) {
  return shape.kind == ControlKind::kIf || shape.kind == ControlKind::kSwitch ? 1 : 0;
}

}  // namespace msrt
