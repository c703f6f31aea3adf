// The oneDNN delegate: convolutions, products and everything around them in f32, on the library's JIT kernels.
// Weights are packed once at Compile; primitives are made when a binding is prepared; oneDNN runs on the OpenMP team of the caller.
#pragma once

#include <memory>

#include "core/place/delegate.h"

namespace msrt {

std::unique_ptr<Delegate> MakeOneDnnDelegate();

}  // namespace msrt
