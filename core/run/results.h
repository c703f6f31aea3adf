// Memory for results: cells that are filled once per run and keep their memory for the next.
#pragma once

#include "core/graph/type.h"
#include "core/run/budget.h"
#include "core/run/value.h"

namespace msrt {

// Returns an error unless the bound memory, if there is any, is for this type. `name` is for error
// messages.
Status CheckBound(const ResultCell& cell, const Type& type, std::string_view name);
// Makes room for a tensor of this type in host memory: the caller's if it is bound there, else the
// cell's own.
Result<TensorView> AllocateResult(ResultCell* cell, const Type& type, std::string_view name,
                                  Budget* budget);
// Moves or copies a value to the cell. `source` (may be null): the cell whose memory the value is
// in; the two cells swap their memory.
Status Deliver(ResultCell* cell, const RunValue& value, ResultCell* source, std::string_view name,
               Budget* budget);
// Returns the value in memory that never changes: itself if it is there already.
Result<RunValue> LastingCopy(const RunValue& value, Budget* budget);

}  // namespace msrt
