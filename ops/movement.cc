#include "ops/families.h"

namespace msrt {

std::span<const OpDef> MovementOps() { return {}; }

}  // namespace msrt
