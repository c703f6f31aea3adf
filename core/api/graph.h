// A graph under construction: a module with one graph.
#pragma once

#include <atomic>
#include <memory>

#include "core/api/handles.h"
#include "core/compile.h"

namespace msrt {

struct GraphObject {
  std::shared_ptr<const Environment> environment;  // goes last: constants come from its allocator
  Module module;
  std::atomic<bool> busy{false};

  Graph& graph() { return module.graphs[0]; }
};

// The pieces of a node's description, checked.
Result<AttrList> AttrsArgument(const GraphObject& graph, const msrt_node_desc& node);
Result<std::vector<Type>> OutputTypesArgument(GraphObject& graph, const msrt_node_desc& node, size_t output_count);

}  // namespace msrt
