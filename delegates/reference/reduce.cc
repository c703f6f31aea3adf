#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> ReduceKernels() { return {}; }

}  // namespace msrt::reference
