// A note beside the primitives that a node became: which node it was. MindSpore skips it; msconvert
// makes the same node of it again, so that a model that went through MindIR computes the same bits,
// where the primitives alone would give another op, or several.
#pragma once

#include "core/graph/graph.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {

// `before`: how many nodes the function had when the node's turn came. Nothing is noted where a
// result is not a node's of its own, where an attribute has no form in the file, or where a weight
// would be stored for it alone.
void NoteOrigin(GraphNames* names, const Node& node, size_t before);

}  // namespace msrt::mindir_export
