// The gradients of whole graphs, which control nodes call. The gradient of a graph is a graph: it
// takes the inputs of the graph and the gradients of its outputs, computes the graph again, and
// returns the gradients of its inputs. Each exists once, so that recursion ends.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "core/autodiff/gradients.h"

namespace msrt {

// Whether gradients flow through values of this type: float tensors, and lists and functions, which
// may hold some.
bool MayCarryGradient(const Type& type);
bool IsDifferentiable(const Type& type);  // a tensor of a float type

// Inputs: those of the graph, then the gradients of the outputs that have one. Outputs: the
// gradients of the wanted inputs.
struct GradientGraph {
  uint32_t graph = 0;
  bool complete = false;    // false while it is made: only a graph that calls itself sees that
  std::vector<bool> reads;  // by input, once complete: whether the outputs depend on it
};

// Serves one call of AddGradients for graph `root`.
class GradientGraphs {
 public:
  GradientGraphs(Module* module, uint32_t root, const OpSet* ops);

  Module& module() { return module_; }
  const OpSet* ops() const { return ops_; }

  // Returns the gradient of graph `graph` for a set of inputs and of outputs, both by position. The
  // pointer stays valid. `wanted` inputs and outputs `with_gradient` must be differentiable.
  Result<const GradientGraph*> Get(uint32_t graph, const std::vector<bool>& wanted,
                                   const std::vector<bool>& with_gradient);

 private:
  Status Make(uint32_t graph, const std::vector<bool>& wanted,
              const std::vector<bool>& with_gradient, GradientGraph* made);
  // Returns the graph without writes of state, also in the graphs that it calls: a value that is
  // computed again must not be written again. The graph itself if it writes nothing.
  uint32_t WithoutWrites(uint32_t graph);
  void RemoveWrites(Graph* graph);
  bool Writes(uint32_t graph);
  Status CheckRepeatable(uint32_t graph) const;

  Module& module_;
  const OpSet* const ops_;
  std::vector<bool> written_;  // by slot: whether `root` or a graph that it calls writes it
  std::map<std::tuple<uint32_t, std::vector<bool>, std::vector<bool>>,
           std::unique_ptr<GradientGraph>>
      made_;
  std::set<uint32_t> unfinished_;  // gradient graphs that are being made
  std::map<uint32_t, uint32_t> without_writes_;
};

// AddGradients as a part of one that is in progress.
Result<std::vector<ValueId>> AddGradientsIn(GradientGraphs* graphs, uint32_t graph,
                                            const GradientRequest& request);

// Returns the attributes of a control node with other graphs, in the order of ControlShape::graphs.
AttrList WithGraphs(const Node& node, const std::vector<uint32_t>& graphs);

}  // namespace msrt
