// The kernels that are linked into this program in their host form, by name.
#pragma once

#include <cstring>

#include "delegates/cuda/kernels/kernel_runtime.h"

namespace msrt::cuda {

// Null if no kernel, or more than one, has the name.
inline const host::Kernel* FindKernel(const char* name) {
  const host::Kernel* found = nullptr;
  for (const host::Kernel* kernel = host::first_kernel; kernel != nullptr; kernel = kernel->next) {
    if (std::strcmp(kernel->name, name) != 0) continue;
    if (found != nullptr) return nullptr;
    found = kernel;
  }
  return found;
}

}  // namespace msrt::cuda
