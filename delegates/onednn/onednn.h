// The oneDNN delegate: convolutions, products and everything around them in f32, on the library's
// JIT kernels. Weights are packed once at Compile; primitives are made when a binding is prepared;
// oneDNN runs on the OpenMP team of the caller.
#pragma once

#include <memory>
#include <string>

#include "delegates/sdk/delegate.h"
#include "ops/evaluator.h"

namespace msrt {

// `fallback` runs a node that was placed here at a shape for which the library has nothing (empty
// inputs, mostly). It outlives the delegate and its kernels.
std::unique_ptr<sdk::Delegate> MakeOneDnnDelegate(const Evaluator& fallback);

std::string OneDnnVersion();       // of the library that was loaded: "3.2.0"
std::string OneDnnInstructions();  // that its kernels use here: "avx2"

}  // namespace msrt
