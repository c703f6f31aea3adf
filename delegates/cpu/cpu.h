// The cpu delegate: vectorised kernels of our own for what is bound by memory, in every layout
// (elementwise ops, gates, batch normalization, pools, reductions, softmax, transposes), for
// attention, whose scores stay in the cache, and for convolutions and products: Winograd's, which
// is fast, and chains of fused multiply-adds, whose bits depend on nothing but the data. They need
// no library, keep NaN, and work in place.
#pragma once

#include <memory>

#include "delegates/sdk/delegate.h"

namespace msrt {

std::unique_ptr<sdk::Delegate> MakeCpuDelegate();

}  // namespace msrt
