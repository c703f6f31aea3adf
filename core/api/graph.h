// Graphs under construction through the C API. The graphs of one model share a module, which
// msrt_graph_compile and msrt_graph_save read.
#pragma once

#include <atomic>
#include <memory>

#include "core/api/handles.h"
#include "core/compile/compile.h"

namespace msrt {

// A model under construction.
struct ModuleDraft {
  std::shared_ptr<const Environment>
      environment;  // destroyed last: constants come from its allocator
  Module module;
  // The value that an msrt_value refers to. All graphs share one numbering, so that a value of
  // another graph is recognised.
  struct GraphValue {
    uint32_t graph;
    ValueId value;
  };
  std::vector<GraphValue> values;  // by msrt_value
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

// Assigns the number by which the application refers to a value of the graph.
msrt_value Publish(const GraphObject& graph, ValueId value);
// `argument` is a prefix: "" or "node.inputs[2]: ".
Result<ValueId> ValueArgument(const GraphObject& graph, msrt_value value,
                              std::string_view argument);

// Attributes and output types of a node's description, checked.
Result<AttrList> AttrsArgument(const GraphObject& graph, const msrt_node_desc& node);
Result<std::vector<Type>> OutputTypesArgument(const GraphObject& graph, const msrt_node_desc& node,
                                              size_t output_count);

}  // namespace msrt
