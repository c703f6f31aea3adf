// Builds a graph node by node and infers types on the way. Used by the zoo, the C API and passes.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace msrt {

class OpSet;  // ops/registry.h

class GraphBuilder {
 public:
  // `ops` are user-defined ops; may be null.
  explicit GraphBuilder(Graph* graph, const OpSet* ops = nullptr) : graph_(graph), ops_(ops) {}

  Graph& graph() { return *graph_; }

  // Appends a node whose outputs have the inferred types. For an op that this build does not know,
  // `declared` must describe the outputs; for others, declared types must agree with the inferred
  // ones. Errors name the node and the op.
  Result<std::vector<ValueId>> Add(std::string_view domain, std::string_view op,
                                   std::string_view name, std::vector<ValueId> inputs,
                                   AttrList attrs, size_t output_count,
                                   std::vector<Type> declared = {});
  // The usual case: an ONNX op with one output, which has the name of the node.
  Result<ValueId> Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
                      AttrList attrs = {});

 private:
  Graph* graph_;
  const OpSet* ops_;
};

}  // namespace msrt
