#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> UnaryKernels() { return {}; }

}  // namespace msrt::reference
