// A small application of the driver's table, for the tests of the emulation.
#pragma once

#include <cstring>
#include <vector>

#include "tests/cuda/emulated_cuda.h"

namespace msrt::cuda {

// One device with a stream. Its context is current in the thread that made it, until the end.
class TestGpu {
 public:
  explicit TestGpu(const CudaApi& api, int device = 0) : cu(api.driver), device_(device) {
    cu.cuInit(0);
    cu.cuDevicePrimaryCtxRetain(&context, device);
    cu.cuCtxPushCurrent(context);
    cu.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    const char image[] = "fatbin";
    cu.cuModuleLoadData(&module, image);
  }
  ~TestGpu() {
    cu.cuCtxPushCurrent(context);
    for (CUdeviceptr pointer : blocks_) cu.cuMemFree(pointer);
    for (void* pointer : pinned_) cu.cuMemFreeHost(pointer);
    cu.cuModuleUnload(module);
    cu.cuStreamDestroy(stream);
    CUcontext popped;
    cu.cuCtxPopCurrent(&popped);
    cu.cuCtxPopCurrent(&popped);
    cu.cuDevicePrimaryCtxRelease(device_);
  }
  TestGpu(const TestGpu&) = delete;
  TestGpu& operator=(const TestGpu&) = delete;

  // The rest of a test works on this device.
  void MakeCurrent() { cu.cuCtxPushCurrent(context); }

  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr pointer = 0;
    if (cu.cuMemAlloc(&pointer, bytes) == CUDA_SUCCESS) blocks_.push_back(pointer);
    return pointer;
  }
  template <typename T>
  T* Pinned(size_t count) {
    void* pointer = nullptr;
    if (cu.cuMemHostAlloc(&pointer, count * sizeof(T), 0) != CUDA_SUCCESS) return nullptr;
    pinned_.push_back(pointer);
    return static_cast<T*>(pointer);
  }
  template <typename T>
  CUdeviceptr Upload(const std::vector<T>& values) {
    const CUdeviceptr pointer = Allocate(values.size() * sizeof(T));
    cu.cuMemcpyHtoDAsync(pointer, values.data(), values.size() * sizeof(T), stream);
    return pointer;
  }
  template <typename T>
  std::vector<T> Download(CUdeviceptr pointer, size_t count, CUstream from = nullptr) {
    std::vector<T> values(count);
    cu.cuMemcpyDtoHAsync(values.data(), pointer, count * sizeof(T), from ? from : stream);
    return values;
  }
  template <typename... Args>
  CUresult Launch(CUstream on, const char* name, unsigned blocks, unsigned threads, unsigned shared,
                  Args... args) {
    CUfunction function = nullptr;
    const CUresult error = cu.cuModuleGetFunction(&function, module, name);
    if (error != CUDA_SUCCESS) return error;
    void* pointers[] = {&args...};
    return cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, on, pointers, nullptr);
  }

  const CudaDriver cu;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUmodule module = nullptr;

 private:
  const int device_;
  std::vector<CUdeviceptr> blocks_;
  std::vector<void*> pinned_;
};

}  // namespace msrt::cuda
