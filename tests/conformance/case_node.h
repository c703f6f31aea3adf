// A node with concrete inputs that tests infer, cut into pieces and run on the reference delegate.
#pragma once

#include <vector>

#include "core/region/resolved_space.h"
#include "ops/op_def.h"
#include "tests/conformance/op_case.h"

namespace msrt::testing {

// Owns the data of its OpView.
struct CaseNode {
  const OpDef* def = nullptr;
  AttrList attrs;
  std::vector<ConstTensor> inputs;
  std::vector<bool> present;
  std::vector<Type> input_types, output_types;
  std::vector<const Type*> input_pointers, output_pointers;
  std::vector<const ConstTensor*> constants;

  // Valid until this object changes or View is called again.
  OpView View();
  Status Infer();
  // Requires inferred types. `threads`: 1 runs everything on the calling thread.
  Result<std::vector<ConstTensor>> Run(int threads = 1);
};

CaseNode NodeOf(const OpCase& c);

// Returns the part of a tensor inside the box.
ConstTensor CutOut(const ConstTensor& t, const Box& box);

// Returns the node that computes `piece`, whose inputs are cut from those of `node`, and the boxes
// of its outputs.
struct Piece {
  CaseNode node;
  std::vector<Box> outputs;
};
Result<Piece> CutPiece(CaseNode& node, const ResolvedSpace& space, const Box& piece);

}  // namespace msrt::testing
