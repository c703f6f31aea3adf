#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> SoftmaxKernels() { return {}; }

}  // namespace msrt::reference
