#include "ops/families.h"

namespace msrt {

std::span<const OpDef> BinaryOps() { return {}; }

}  // namespace msrt
