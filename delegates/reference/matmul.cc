#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> MatMulKernels() { return {}; }

}  // namespace msrt::reference
