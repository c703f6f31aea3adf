// The iteration space of every op that works element by element, with NumPy broadcasting of its
// inputs or without.
#pragma once

#include "ops/op_def.h"

namespace msrt {

// One parallel axis for each dim of output 0. For one input of the same dims this is the identity.
// Elements of 4 bits share bytes, so a node that reads or writes them cannot be cut.
extern const SpaceDef kElementwiseSpace;

}  // namespace msrt
