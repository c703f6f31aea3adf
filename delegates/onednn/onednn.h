// The oneDNN delegate: convolutions, products and everything around them in f32, on the library's JIT kernels.
// Weights are packed once at Compile; primitives are made when a binding is prepared; oneDNN runs on the OpenMP team of the caller.
#pragma once

#include <memory>

#include "delegates/sdk/delegate.h"
#include "ops/evaluator.h"

namespace msrt {

// `fallback` runs a node that was placed here at a shape for which the library has nothing (empty inputs, mostly). It outlives the delegate
// and its kernels.
std::unique_ptr<sdk::Delegate> MakeOneDnnDelegate(const Evaluator& fallback);

}  // namespace msrt
