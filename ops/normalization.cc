#include "ops/families.h"

namespace msrt {

std::span<const OpDef> NormalizationOps() { return {}; }

}  // namespace msrt
