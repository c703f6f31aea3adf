#include "ops/families.h"

namespace msrt {

std::span<const OpDef> ShapeOps() { return {}; }

}  // namespace msrt
