#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> PoolKernels() { return {}; }

}  // namespace msrt::reference
