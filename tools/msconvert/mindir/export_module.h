// Writes a module as functions of a MindIR file. Each graph becomes a function, and gets its
// captures as arguments, as in the module. Functions that touch state also take the parameters that
// hold it and a token that orders the accesses.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "tools/msconvert/mindir/export.h"
#include "tools/msconvert/mindir/export_expand.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {

// Stands for the values of a node that was refused, so that all other nodes are still checked.
inline constexpr const char* kRefused = "refused";

// The state of a module inside one function. Empty if the graph touches none.
struct StateNames {
  std::vector<Ref> slots;
  Ref token;
};

class ModuleExport {
 public:
  ModuleExport(const Module& module, std::span<const ExpandedNode> expanded, FileWriter* file)
      : module_(module), expanded_(expanded), file_(*file) {}
  std::vector<Refusal> Run();

  const Module& module() const { return module_; }
  FileWriter& file() { return file_; }
  // Returns the function for a graph; it is written later.
  Ref FunctionOf(uint32_t graph);
  bool TouchesState(uint32_t graph) const { return touches_state_[graph]; }

 private:
  struct Pending {
    uint32_t graph;
    mindir::GraphProto* function;
  };
  bool CallsState(const Node& node) const;
  void FindEffects();
  void WriteMain();
  void WriteGraph(uint32_t index, FunctionWriter* out, bool is_main);
  Status WriteNode(GraphNames* names, StateNames* state, const Node& node);
  void WriteNodes(uint32_t index, GraphNames* names, StateNames* state);
  void Refuse(const Node& node, const Status& why);

  const Module& module_;
  const std::span<const ExpandedNode> expanded_;
  FileWriter& file_;
  std::map<uint32_t, Ref> functions_;
  std::deque<Pending> pending_;
  std::vector<bool> touches_state_;
  std::vector<Ref> slots_;  // the parameters of state, as named in the main graph
  std::vector<Refusal> refusals_;
};

// Writes a node that calls graphs. Errors say what MindSpore lacks.
Status LowerControl(ModuleExport* module, GraphNames* names, StateNames* state, const Node& node);

// Returns the single result of a function, or a tuple of several.
Ref Bundle(FunctionWriter* out, const std::vector<Ref>& results);

}  // namespace msrt::mindir_export
