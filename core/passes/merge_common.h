// Merges nodes that compute the same thing: same op, attributes, inputs and region, no effects; and
// constants with the same bytes. Outputs of the graph are not merged, so that each keeps its name.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status MergeCommon(const PassContext& context, Graph* graph);

}  // namespace msrt
