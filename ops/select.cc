#include "ops/families.h"

namespace msrt {

std::span<const OpDef> SelectOps() { return {}; }

}  // namespace msrt
