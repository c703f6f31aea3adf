// The table of every op this build knows, and look-up in it.
#pragma once

#include <functional>
#include <string_view>

#include "ops/op_def.h"

namespace msrt {

// Null where the op is unknown. O(1).
const OpDef* FindOp(std::string_view domain, std::string_view name);
// Calls `visit` for each entry, family by family.
void ForEachOp(const std::function<void(const OpDef&)>& visit);

}  // namespace msrt
