// The compiled kernels of this folder: for each file in kernels/ a fat binary with code for every
// supported architecture and PTX for later ones, which is part of the library's read-only data.
#pragma once

#include <string_view>

namespace msrt::cuda {

// The image of kernels/<file>.cu for cuModuleLoadData; null if there is no such file. An emulated
// driver ignores it: it finds kernels by name.
const void* KernelImage(std::string_view file);

}  // namespace msrt::cuda
