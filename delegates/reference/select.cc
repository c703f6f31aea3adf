#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> SelectKernels() { return {}; }

}  // namespace msrt::reference
