#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> ResizeKernels() { return {}; }

}  // namespace msrt::reference
