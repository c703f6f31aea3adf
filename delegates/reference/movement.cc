#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> MovementKernels() { return {}; }

}  // namespace msrt::reference
