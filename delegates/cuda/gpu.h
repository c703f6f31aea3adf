// A GPU: its context, properties, memory pool and kernels. Devices (device.h) and the delegate
// (cuda.h) work through it. Every function makes the context current for its own duration, so that
// any thread may call, and turns a failed driver call into a Status that names call and GPU.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/status.h"
#include "core/graph/dtype.h"
#include "delegates/cuda/api.h"

namespace msrt::cuda {

struct GpuOptions {
  size_t memory_limit = 0;  // bytes that allocations may use; 0: all that the GPU has
  // Freed memory that the pool keeps for the next allocation; the rest goes back to the GPU.
  size_t keep_bytes = size_t{256} << 20;
};

// What costs are estimated from.
struct GpuProperties {
  std::string name;          // "NVIDIA A100-SXM4-40GB"
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 1;
  size_t total_bytes = 0;
  double bytes_per_second = 0;  // of the GPU's memory
  double clock_hz = 0;
  std::string blas_missing;  // why there is no cuBLASLt; empty: it is there

  // Peak throughput of products of this type by the libraries, with tensor cores; a multiply-add
  // counts two.
  double FlopsOf(DType type) const;
  // The same of f32 instructions, which own kernels use.
  double PlainFlops() const;
};

struct PoolReport {
  size_t used = 0, reserved = 0, peak = 0;  // bytes
};

class Gpu {
 public:
  // `ordinal` is the driver's number. The GPU's name is "cuda<ordinal>".
  static Result<std::shared_ptr<Gpu>> Open(std::shared_ptr<const CudaApi> api, int ordinal,
                                           const GpuOptions& options);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const std::string& name() const { return name_; }
  int ordinal() const { return ordinal_; }
  CUdevice device() const { return device_; }
  CUcontext context() const { return context_; }
  const GpuProperties& properties() const { return properties_; }
  const CudaApi& api() const { return *api_; }
  const CudaDriver& driver() const { return api_->driver; }

  // The context is current in this thread as long as the object lives.
  class Scope {
   public:
    explicit Scope(const Gpu& gpu) : gpu_(gpu) {
      result_ = gpu.driver().cuCtxPushCurrent(gpu.context());
    }
    ~Scope() {
      CUcontext popped;
      if (result_ == CUDA_SUCCESS) (void)gpu_.driver().cuCtxPopCurrent(&popped);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const Gpu& gpu_;
    CUresult result_;
  };

  // "cuda0 (NVIDIA A100): cuLaunchKernel: CUDA_ERROR_...: text". Remembers errors after which the
  // context cannot be used again: the GPU is lost.
  Status Check(CUresult result, const char* call) const;
  // An error if the GPU is lost; then no call of the driver is worth making.
  Status Alive() const;
  bool lost() const { return lost_.load(std::memory_order_relaxed); }

  // Memory that any stream may use at once, aligned to 256; never null.
  Result<void*> Allocate(size_t bytes);
  void Free(void* pointer, size_t bytes);
  // Copies from the host and returns when the copy is done: for constants of prepared kernels.
  Status Upload(void* to, const void* from, size_t bytes);
  // Bytes that can still be allocated, with the limit.
  Result<size_t> FreeBytes();
  // Gives freed memory beyond `keep` bytes back to the GPU.
  Status Trim(size_t keep);
  Result<PoolReport> Report() const;
  // Lets copies between the two GPUs go directly, where the machine can. Not an error elsewhere.
  Status ConnectPeer(const Gpu& peer);
  bool Reaches(const Gpu& peer) const;

  // A kernel of kernels/<file>.cu, by name. The file's image is loaded with its first kernel.
  Result<CUfunction> Function(const char* file, const char* name);
  // The handle of cuBLASLt, made by the first call. Any thread may use it.
  Result<cublasLtHandle_t> Blas();
  // "cuda0 (NVIDIA A100): cublasLtMatmul: status 14". An error of the driver that is behind it
  // shows in the next call of the driver.
  Status CheckBlas(cublasStatus_t status, const char* call) const;

 private:
  Gpu(std::shared_ptr<const CudaApi> api, int ordinal, const GpuOptions& options);
  Status Init();
  Status ReadProperties();
  Status MakePool();
  Result<CUmodule> Module(const char* file);  // requires mutex_ and the context
  Result<void*> TryAllocate(size_t bytes);

  const std::shared_ptr<const CudaApi> api_;
  const int ordinal_;
  const GpuOptions options_;
  const std::string name_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  GpuProperties properties_;
  CUmemoryPool pool_ = nullptr;       // null: the GPU has none, cuMemAlloc is used
  CUstream memory_stream_ = nullptr;  // order of allocations; nothing else runs in it
  mutable std::mutex mutex_;          // guards what follows
  size_t used_ = 0;
  cublasLtHandle_t blas_ = nullptr;
  std::map<std::string, CUmodule, std::less<>> modules_;  // by file
  std::map<std::string, CUfunction, std::less<>> functions_;
  mutable std::mutex lost_mutex_;
  mutable std::string lost_text_;
  mutable std::atomic<bool> lost_{false};
};

}  // namespace msrt::cuda
