#include "delegates/cuda/launch.h"

namespace msrt::cuda {

Status Launch(const Stream& stream, CUfunction function, const char* name, const Grid& grid,
              const void* args) {
  const Gpu& gpu = *stream.gpu;
  MSRT_RETURN_IF_ERROR(gpu.Alive());
  const Gpu::Scope scope(gpu);
  void* pointers[] = {const_cast<void*>(args)};
  const CUresult result =
      gpu.driver().cuLaunchKernel(function, grid.x, grid.y, grid.z, grid.threads, 1, 1,
                                  grid.shared_bytes, stream.handle, pointers, nullptr);
  return result == CUDA_SUCCESS ? OkStatus()
                                : gpu.Check(result, StrCat("cuLaunchKernel(", name, ")").c_str());
}

}  // namespace msrt::cuda
