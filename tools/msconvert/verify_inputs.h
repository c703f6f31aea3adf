// Inputs of a verification: read from files, or random ones at given or guessed sizes.
#pragma once

#include "tools/msconvert/verify.h"
#include "tools/tensors/made_input.h"

namespace msrt {

struct VerifyInputs {
  std::vector<NamedTensor> tensors;  // in the order of the model's inputs
  std::vector<bool> made;            // by input: random, not from a file
  bool masks = false;                // some of the random ones are masks

  // "x 1x3x224x224 made up, ids 1x9 from ids.npy".
  std::string Text() const;
  // Returns what a user can do if the inputs do not fit the model; empty if all came from files.
  std::string Cure() const;
};

// Reads the files of the request and makes the other inputs at the request's sizes; the files also
// fix the sizes of symbols for the others.
Result<VerifyInputs> MakeInputs(const VerifyRequest& request, const Module& module,
                                MaskPattern masks, uint64_t seed = 0);
// Reads input_0, input_1, ... from the request's folder.
Result<VerifyInputs> ReadInputs(const VerifyRequest& request, const Module& module);
// Returns the same tensors with their elements in reverse order: other inputs that are just as
// valid.
VerifyInputs Reversed(const VerifyInputs& inputs);

// Reads `stem`.npy or .pb. The bits of types that NumPy lacks become numbers of `declared` type.
Result<ConstTensor> ReadTensor(const std::string& stem, DType declared);

}  // namespace msrt
