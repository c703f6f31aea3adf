// The delegate "kernels": what applications registered, one candidate for each kernel, node and
// layout. It speaks msrt_plugin.h on both sides, since kernels see the host's own view of a node.
#pragma once

#include <span>

#include "core/extend/registered_kernel.h"
#include "delegates/sdk/export.h"

namespace msrt {

sdk::ExportedDelegate MakeKernelsDelegate(std::span<const RegisteredKernel> kernels);

}  // namespace msrt
