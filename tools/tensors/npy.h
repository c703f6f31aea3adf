// NumPy's .npy files. Types that NumPy lacks are stored as raw bits: bf16 as <u2, 8- and 4-bit
// types as |u1 with one element per byte.
#pragma once

#include <string>

#include "core/base/io.h"
#include "core/graph/tensor.h"

namespace msrt {

// Reads a C-order array. `want` is the element type that the bits represent (so that <u2 can become
// bf16); other types must agree. 4-bit elements may also be stored as |i1.
Result<ConstTensor> ReadNpy(const std::string& path, DType want);
// Reads an array of the type that the file has.
Result<ConstTensor> ReadNpy(const std::string& path);
Status WriteNpy(const std::string& path, const TensorView& tensor);

// Returns a name as part of a file name: characters outside [A-Za-z0-9_.-] become '_'.
std::string FileNameFor(std::string_view name);

}  // namespace msrt
