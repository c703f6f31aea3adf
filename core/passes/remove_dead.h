// Removes nodes whose outputs nobody uses and values that nothing mentions. Nodes with effects
// stay.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status RemoveDead(const PassContext& context, Graph* graph);

}  // namespace msrt
