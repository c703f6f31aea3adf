// Reverse-mode differentiation: graph in, graph with gradients out. The gradient of a node is built
// of ordinary nodes by the rule of its op (OpDef::grad), and every op that rules use has a rule of
// its own, so that gradients can be differentiated again.
//
// Runs before parallelisation and passes: passes then merge what forward and backward have in
// common and remove what neither needs.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

class OpSet;  // ops/registry.h

struct GradientRequest {
  std::vector<ValueId> of;  // the values that are differentiated, of float types
  // The gradient with respect to each of them, with its type; empty or kNoValue: ones.
  std::vector<ValueId> seeds;
  std::vector<ValueId> with_respect_to;
  size_t first_node = 0;  // nodes before it count as constants
  // Values that count as constants too: gradients stop there.
  std::vector<ValueId> constants = {};
};

// Appends nodes to graph `graph` of the module that compute, for each value of `with_respect_to`,
// the sum over `of` of seed times derivative. Returns those values, which are zeros where nothing
// depends on one. New graphs are appended to the module where control flow is differentiated.
//
// Requires a validated module. An op without a gradient is an error that names the node and the
// path of nodes from the value to it.
Result<std::vector<ValueId>> AddGradients(Module* module, uint32_t graph,
                                          const GradientRequest& request,
                                          const OpSet* ops = nullptr);

}  // namespace msrt
