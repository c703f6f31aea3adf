#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> NormalizationKernels() { return {}; }

}  // namespace msrt::reference
