// Structural equality of constants and graphs, regardless of the names and numbers of their values.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// Small constants are compared by their bytes, large ones by address only: loading must not read
// all weights.
bool SameConstant(const ConstTensor& a, const ConstTensor& b);

// The same nodes in the same order on the same inputs. Nodes with effects must also have the same
// name, because a random op may derive its seed from it.
bool SameGraph(const Graph& a, const Graph& b);

}  // namespace msrt
