// A graph under construction: one of the graphs of a module, which they share.
#pragma once

#include <atomic>
#include <memory>

#include "core/api/handles.h"
#include "core/compile/compile.h"

namespace msrt {

// A model under construction.
struct ModuleDraft {
  std::shared_ptr<const Environment> environment;  // goes last: constants come from its allocator
  Module module;
  // What an msrt_value stands for. One numbering for all graphs, so that a value of another graph
  // is recognised.
  struct Given {
    uint32_t graph;
    ValueId value;
  };
  std::vector<Given> given;
  std::atomic<bool> busy{false};
};

struct GraphObject {
  GraphObject(std::shared_ptr<ModuleDraft> of, uint32_t number)
      : draft(std::move(of)), index(number), busy(draft->busy) {}
  const std::shared_ptr<ModuleDraft> draft;
  const uint32_t index;     // in the module
  std::atomic<bool>& busy;  // all graphs of a module together

  Module& module() const { return draft->module; }
  Graph& graph() const { return draft->module.graphs[index]; }
  const std::shared_ptr<const Environment>& environment() const { return draft->environment; }
};

// The number by which the application knows a value of the graph from now on.
msrt_value Publish(const GraphObject& graph, ValueId value);
// `argument` is a prefix: "" or "node.inputs[2]: ".
Result<ValueId> ValueArgument(const GraphObject& graph, msrt_value value,
                              std::string_view argument);

// The pieces of a node's description, checked.
Result<AttrList> AttrsArgument(const GraphObject& graph, const msrt_node_desc& node);
Result<std::vector<Type>> OutputTypesArgument(const GraphObject& graph, const msrt_node_desc& node,
                                              size_t output_count);

}  // namespace msrt
