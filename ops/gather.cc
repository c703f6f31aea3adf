#include "ops/families.h"

namespace msrt {

std::span<const OpDef> GatherOps() { return {}; }

}  // namespace msrt
