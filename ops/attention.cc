#include "ops/families.h"

namespace msrt {

std::span<const OpDef> AttentionOps() { return {}; }

}  // namespace msrt
