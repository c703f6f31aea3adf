// The constants of a module as memory: how much they take, and how a new one gets its own.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// Of all constants; those that share their bytes count once.
size_t ConstantBytes(const Module& module);

// A constant whose bytes are still to be set.
struct NewConstant {
  ConstTensor tensor;
  std::span<std::byte> bytes;
};
// Aligned like every tensor. Requires known dims.
Result<NewConstant> MakeConstant(DType dtype, const Dims& dims);

}  // namespace msrt
