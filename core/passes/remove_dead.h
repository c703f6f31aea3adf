// Removes nodes whose outputs are unused and values that nothing refers to. Nodes with effects
// stay.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RemoveDead(const PassContext& context, Graph* graph);

}  // namespace msrt
