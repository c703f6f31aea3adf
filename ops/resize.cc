#include "ops/families.h"

namespace msrt {

std::span<const OpDef> ResizeOps() { return {}; }

}  // namespace msrt
