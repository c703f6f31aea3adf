// The cuda delegate: kernels on NVIDIA GPUs, with cuBLASLt and cuDNN where they are. This header
// names nothing of CUDA, so that what assembles a runtime needs none of its headers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/abi/msrt_device.h"
#include "delegates/sdk/delegate.h"

namespace msrt {
namespace cuda {
struct CudaApi;
}

struct CudaOptions {
  std::vector<int> devices;  // the driver's numbers of the GPUs; empty: all
  size_t memory_limit = 0;   // bytes that each GPU's allocations may use; 0: all it has
  // Freed memory that a GPU's pool keeps for the next allocation.
  size_t keep_bytes = size_t{256} << 20;
};

// The devices are registered first, then the delegate, which names them. Each `self` is owned by
// whoever registers it.
struct CudaParts {
  struct DevicePart {
    msrt_device_api api;
    void* self;
  };
  std::vector<DevicePart> devices;
  std::unique_ptr<const sdk::Delegate> delegate;
  std::vector<std::string> notes;  // what is there in part only: "cuDNN: libcudnn.so.9 not found"
};

// Opens the GPUs through the given tables, which are copied.
Result<CudaParts> MakeCudaDelegate(const cuda::CudaApi& api, const CudaOptions& options = {});

// The same with the libraries of this system. An error says why there is no CUDA here.
Result<CudaParts> MakeSystemCudaDelegate(const CudaOptions& options = {});
// Empty where the libraries and at least one GPU are there; else the reason. Opens no GPU.
std::string WhyNoCuda();

}  // namespace msrt
