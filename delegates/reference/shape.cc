#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> ShapeKernels() { return {}; }

}  // namespace msrt::reference
