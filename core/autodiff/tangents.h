// Forward-mode differentiation: products of the Jacobian with a vector. A gradient is a linear
// function of its seeds, and its own gradient with respect to them is the product sought (the
// transpose of the transpose). So every op that has a gradient has a tangent, through control flow
// too, and both modes can be mixed. What the inner gradient computes besides is removed by passes.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace msrt {

class OpSet;  // ops/registry.h

struct TangentRequest {
  std::vector<ValueId> of;  // the values whose change is sought, of float types
  std::vector<ValueId> with_respect_to;
  // The direction in which each of these changes, with its type; empty or kNoValue: ones.
  std::vector<ValueId> tangents;
};

// Appends nodes to graph `graph` of the module that compute, for each value of `of`, its derivative
// along the tangents. Returns those values. Requirements and errors are those of AddGradients.
Result<std::vector<ValueId>> AddTangents(Module* module, uint32_t graph,
                                         const TangentRequest& request, const OpSet* ops = nullptr);

}  // namespace msrt
