#include "ops/families.h"

namespace msrt {

std::span<const OpDef> PoolOps() { return {}; }

}  // namespace msrt
