// The interface through which a user-defined pass or importer changes a graph: msrt_graph_editor
// over a Graph.
#pragma once

#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/graph/graph.h"

namespace msrt {

class OpSet;  // ops/registry.h

// Added nodes are appended to `graph` at once, so that their types are known; Finish moves them to
// their positions.
class GraphEditor {
 public:
  GraphEditor(Graph* graph, const OpSet* ops)
      : graph_(*graph), ops_(ops), original_nodes_(graph->nodes.size()) {}
  GraphEditor(const GraphEditor&) = delete;
  GraphEditor& operator=(const GraphEditor&) = delete;

  msrt_graph_editor api();
  // No edits may follow. Unused nodes are left for the pass that drops them.
  void Finish();

 private:
  Status AddConstant(const char* name, const msrt_shape* shape, const void* data, int64_t* value);
  struct NewNode {
    size_t before;
    const char *domain, *op, *name;
    std::span<const int64_t> inputs;
    std::span<const msrt_attr_view> attrs;
    const msrt_shape* declared;
    std::span<int64_t> outputs;
  };
  Status AddNode(const NewNode& node);
  Status Replace(int64_t from, int64_t to);
  Result<ValueId> ValueArgument(int64_t id, std::string_view what) const;

  Graph& graph_;
  const OpSet* ops_;
  const size_t original_nodes_;
  std::vector<size_t> before_;  // by added node: the original node that it goes before
};

}  // namespace msrt
