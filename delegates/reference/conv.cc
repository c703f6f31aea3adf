#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> ConvKernels() { return {}; }

}  // namespace msrt::reference
