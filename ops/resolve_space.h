// Resolves the iteration space of a node into data, whichever form its entry has.
#pragma once

#include "core/region/resolved_space.h"
#include "ops/op_def.h"

namespace msrt {

// Requires concrete types. kUnsupported if the op or this particular node cannot be cut. The
// space of an entry with callbacks calls them later, so what `op` points to must outlive it; other
// spaces stand alone.
Result<ResolvedSpace> ResolveSpace(const OpDef& def, const OpView& op);
Result<ResolvedSpace> ResolveSpace(const SpaceDef& def, const OpView& op);

}  // namespace msrt
