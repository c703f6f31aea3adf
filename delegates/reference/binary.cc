#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> BinaryKernels() { return {}; }

}  // namespace msrt::reference
