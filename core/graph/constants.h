// Memory of a module's constants: its total size, and the allocation of new constants.
#pragma once

#include "core/graph/graph.h"

namespace msrt {

// The bytes of all constants; constants that share their bytes count once.
size_t ConstantBytes(const Module& module);

// A constant whose bytes the caller still has to write.
struct NewConstant {
  ConstTensor tensor;
  std::span<std::byte> bytes;
};
// Allocates a constant, aligned like every tensor. Requires known dims.
Result<NewConstant> MakeConstant(DType dtype, const Dims& dims);

}  // namespace msrt
