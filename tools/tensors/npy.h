// NumPy's .npy files. Types that NumPy lacks are raw bits: bf16 as <u2, 8- and 4-bit types as |u1
// with one element a byte.
#pragma once

#include <string>

#include "core/base/io.h"
#include "core/graph/tensor.h"

namespace msrt {

// Reads a C-order array. `want` is the element type that the bits are meant to be (so that <u2 can
// become bf16); other types must agree. 4-bit elements may also be numbers of |i1.
Result<ConstTensor> ReadNpy(const std::string& path, DType want);
// Reads whatever type the file has.
Result<ConstTensor> ReadNpy(const std::string& path);
Status WriteNpy(const std::string& path, const TensorView& tensor);

// A name as part of a file name: characters outside [A-Za-z0-9_.-] become '_'.
std::string FileNameFor(std::string_view name);

}  // namespace msrt
