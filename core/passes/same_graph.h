// Whether constants and whole graphs are the same, whatever their values are called and numbered.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// Small ones are compared by their bytes, large ones by address only: a load must not read all
// weights.
bool SameConstant(const ConstTensor& a, const ConstTensor& b);

// The same nodes in the same order on the same inputs. A node with effects is the same only under
// the same name, from which a random one may take its seed.
bool SameGraph(const Graph& a, const Graph& b);

}  // namespace msrt
