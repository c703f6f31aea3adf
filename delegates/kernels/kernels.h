// The delegate "kernels": runs the kernels that applications registered, with one candidate for
// each kernel, node and layout. It uses msrt_plugin.h on both sides, since kernels see the host's
// view of a node unchanged.
#pragma once

#include <span>

#include "core/extend/registered_kernel.h"
#include "delegates/sdk/export.h"

namespace msrt {

sdk::ExportedDelegate MakeKernelsDelegate(std::span<const RegisteredKernel> kernels);

}  // namespace msrt
