// A runtime with the cuda delegate on emulated GPUs, and the reference delegate.
#pragma once

#include <memory>

#include "core/compile/compile.h"
#include "delegates/cuda/cuda.h"
#include "tests/cuda/emulated_cuda.h"

namespace msrt::testing {

// The delegate made from the tables, with its devices (Delegate::devices). Ends the process if that
// fails.
std::shared_ptr<const Delegate> CudaOn(const cuda::CudaApi& api, const CudaOptions& options = {});

// Everything holds the GPUs, so it must be gone before the emulation ends.
class EmulatedEnvironment {
 public:
  explicit EmulatedEnvironment(const cuda::EmulationOptions& emulation = {},
                               const CudaOptions& options = {});
  ~EmulatedEnvironment();
  cuda::EmulatedCuda& cuda() { return cuda_; }
  const std::shared_ptr<Environment>& environment() const { return environment_; }

 private:
  cuda::EmulatedCuda cuda_;
  std::shared_ptr<Environment> environment_;
};

}  // namespace msrt::testing
