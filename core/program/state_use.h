// Which state slots the graphs of a module read and write, with everything they call, and what
// follows for the state steps of a program: which reads need no copy, and which results can be made
// in a slot's own memory.
#pragma once

#include "core/program/program.h"

namespace msrt {

// The slots that each graph may touch during one activation, including the graphs that it calls. A
// call of a function value may reach every graph of which the module makes a function. Immutable.
class StateUse {
 public:
  StateUse() = default;
  explicit StateUse(const Module& module);

  bool MayRead(uint32_t graph, size_t slot) const { return Has(reads_, graph, slot); }
  bool MayWrite(uint32_t graph, size_t slot) const { return Has(writes_, graph, slot); }
  // The analysis was given up: every graph may touch every slot.
  bool unbounded() const { return reads_.empty(); }
  // Calls visit(slot) for each slot that the graph may read or write.
  void ForEachRead(uint32_t graph, FunctionRef<void(size_t)> visit) const {
    ForEach(reads_, graph, visit);
  }
  void ForEachWritten(uint32_t graph, FunctionRef<void(size_t)> visit) const {
    ForEach(writes_, graph, visit);
  }
  // No graph calls it, so its activation is the beginning of a run.
  bool BeginsRuns(uint32_t graph) const { return !called_[graph]; }
  // The graphs that a control node may call.
  std::span<const uint32_t> CalledBy(const ControlShape& control) const;

 private:
  using Bits = std::vector<uint64_t>;  // by graph and slot
  void ForEach(const Bits& bits, uint32_t graph, FunctionRef<void(size_t)> visit) const;
  bool Has(const Bits& bits, uint32_t graph, size_t slot) const {
    return bits.empty() || (bits[graph * row_ + slot / 64] >> (slot % 64) & 1) != 0;
  }
  void FindDirect(const Module& module);
  void AddCallees();
  bool Merge(uint32_t callee, uint32_t caller);

  size_t slots_ = 0, row_ = 0;                  // row_: words of one graph
  Bits reads_, writes_;                         // empty: unbounded
  std::vector<char> called_;                    // by graph
  std::vector<std::vector<uint32_t>> callees_;  // by graph
  std::vector<uint32_t> functions_;             // graphs that a call of a function value may reach
};

// Decides how the state reads of the program of graph `graph` find their values (Step::access) and
// which values are made in a slot's memory (Program::state_updates), and lists the slots
// (Program::state_slots). A read is in place if nothing can overwrite the value while it is used; a
// written value is made in the slot's memory if the role allows it and nothing needs the old value
// from then on: on the host, or on the device whose kernel makes it, where it then stays (the copy
// to the host is dropped from the program). The value of a slot that is not a cache is moved to a
// device or into a layout once, not in each run: the transfers are kept (Step::is_kept) unless the
// slot may be written while their results are used. Linear in the steps and in the slots that they
// may touch.
void PlanStateAccess(const Module& module, const StateUse& use, uint32_t graph, Program* program);

}  // namespace msrt
