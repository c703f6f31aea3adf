// Inputs of a verification: read from files, or made up for the model at given or guessed sizes.
#pragma once

#include "tools/msconvert/verify.h"
#include "tools/tensors/made_input.h"

namespace msrt {

struct VerifyInputs {
  std::vector<NamedTensor> tensors;  // in the order of the model's inputs
  std::vector<bool> made;            // by input: not from a file
  bool masks = false;                // some of those that were made are masks

  // "x 1x3x224x224 made up, ids 1x9 from ids.npy".
  std::string Text() const;
  // What a user can do where these do not fit the model; empty: all came from files.
  std::string Cure() const;
};

// NAME=FILE.npy of the request, the rest made up at the request's sizes; files fix the sizes of
// symbols for the others too.
Result<VerifyInputs> MakeInputs(const VerifyRequest& request, const Module& module,
                                MaskPattern masks, uint64_t seed = 0);
// input_0, input_1, ... of the request's folder.
Result<VerifyInputs> ReadInputs(const VerifyRequest& request, const Module& module);
// The same tensors with their elements in reverse order: other inputs that are as good.
VerifyInputs Reversed(const VerifyInputs& inputs);

// FOLDER/NAME.npy or .pb, as numbers of `declared` type where NumPy has only their bits.
Result<ConstTensor> ReadTensor(const std::string& stem, DType declared);

}  // namespace msrt
