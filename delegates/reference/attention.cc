#include "delegates/reference/kernel.h"

namespace msrt::reference {

std::span<const KernelDef> AttentionKernels() { return {}; }

}  // namespace msrt::reference
