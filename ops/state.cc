#include "ops/families.h"

namespace msrt {

std::span<const OpDef> StateOps() { return {}; }

}  // namespace msrt
