// Binds pieces of a program: the steps that compute boxes of some of its values, for one set of
// whole input shapes. The kernels are those that were compiled once for the whole graph.
#pragma once

#include <memory>

#include "core/bind/binding.h"
#include "core/bind/piece_kernels.h"
#include "ops/required_boxes.h"

namespace msrt {

// A box of a value in plain host memory of the caller.
struct PieceTensor {
  ValueId value;
  Box box;
  Dims strides;  // in elements; empty: dense
};

struct PieceRequest {
  // Sources become the inputs of the binding, targets its outputs. A source may be any value of the
  // graph, as may a target.
  std::vector<PieceTensor> sources, targets;
};

// Immutable, so that several threads may bind at once. The program outlives it and its bindings.
class PieceBinder : public std::enable_shared_from_this<PieceBinder> {
 public:
  // Checks the whole input types and infers all others. kUnsupported if the graph has state or
  // control flow, or if sizes depend on data.
  static Result<std::shared_ptr<const PieceBinder>> Make(const Program& program,
                                                         const Module& module,
                                                         const Evaluator& evaluator,
                                                         std::span<const Type> inputs);

  const Type& type(ValueId value) const { return facts_.types[IndexOf(value)]; }

  const GraphSpaces& spaces() const { return *spaces_; }

  // Returns the boxes that the request requires, of graph inputs and of all other values.
  Result<RequiredBoxes> Required(const PieceRequest& request) const;

  // kInvalidArgument if a graph input is required outside its source.
  Result<std::shared_ptr<const Binding>> Bind(const PieceRequest& request,
                                              PieceKernels* kernels) const;

 private:
  friend class PieceSteps;
  PieceBinder(const Program& program, GraphFacts facts)
      : program_(program), facts_(std::move(facts)) {}
  Status Resolve();

  const Program& program_;
  GraphFacts facts_;
  std::unique_ptr<const GraphSpaces> spaces_;  // refers to facts_
  std::vector<std::vector<uint32_t>> groups_;  // the nodes of each step that has some, in order
  std::vector<const Step*> steps_;             // by node
};

}  // namespace msrt
