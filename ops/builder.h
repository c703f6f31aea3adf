// Builds a graph node by node with inference on the way: what the zoo, the C API and passes use.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "ops/op_def.h"

namespace msrt {

class OpSet;  // ops/registry.h

class GraphBuilder {
 public:
  // `ops` are known beside the library's; may be null.
  explicit GraphBuilder(Graph* graph, const OpSet* ops = nullptr) : graph_(graph), ops_(ops) {}

  Graph& graph() { return *graph_; }

  // Appends a node and gives its outputs the inferred types. For an op that this build does not
  // know (`declared` must then describe the outputs) the types are taken as they are; for others,
  // what is declared must agree. Errors name the node and the op.
  Result<std::vector<ValueId>> Add(std::string_view domain, std::string_view op,
                                   std::string_view name, std::vector<ValueId> inputs,
                                   AttrList attrs, size_t output_count,
                                   std::vector<Type> declared = {});
  // The usual case: an ONNX op with one output, called like the node.
  Result<ValueId> Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
                      AttrList attrs = {});

 private:
  Graph* graph_;
  const OpSet* ops_;
};

}  // namespace msrt
