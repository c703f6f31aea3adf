#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> GatherKernels() { return {}; }

}  // namespace msrt::reference
