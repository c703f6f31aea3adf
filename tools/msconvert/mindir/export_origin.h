// Notes beside the primitives of a node which node they were. MindSpore ignores the note; msconvert
// restores the node from it, so that a model computes the same bits after a round trip through
// MindIR. The primitives alone would become another op, or several.
#pragma once

#include "core/graph/graph.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {

// `before` is the number of nodes of the function before this node was written. Writes no note if a
// result is not one of the new nodes, if the file cannot encode an attribute, or if a weight would
// be stored only for the note.
void NoteOrigin(GraphNames* names, const Node& node, size_t before);

}  // namespace msrt::mindir_export
