#include "ops/families.h"

namespace msrt {

std::span<const OpDef> UnaryOps() { return {}; }

}  // namespace msrt
