// The functions of NVIDIA's libraries that the cuda delegate calls, as tables of pointers. LoadCuda
// fills them from the libraries of the system at run time, so that a binary built with CUDA also
// runs where there is none; tests fill them with an emulation (tests/cuda). No other file of this
// folder names a library. Types come from the libraries' headers; no symbol of theirs is linked.
#pragma once

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn_backend.h>
#include <nccl.h>

#include <string>

namespace msrt::cuda {

// clang-format off
#define MSRT_CUDA_DRIVER(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) \
  X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) \
  X(cuDeviceTotalMem) X(cuDeviceGetUuid) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) \
  X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxGetStreamPriorityRange) X(cuMemGetInfo) \
  X(cuDeviceCanAccessPeer) X(cuCtxEnablePeerAccess) \
  X(cuDeviceGetDefaultMemPool) X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolSetAttribute) \
  X(cuMemPoolGetAttribute) X(cuMemPoolTrimTo) X(cuMemPoolSetAccess) \
  X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuMemAlloc) X(cuMemFree) \
  X(cuMemHostAlloc) X(cuMemFreeHost) \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuMemcpyPeerAsync) \
  X(cuMemsetD8Async) \
  X(cuStreamCreateWithPriority) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) \
  X(cuStreamWaitEvent) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) \
  X(cuEventQuery) X(cuEventElapsedTime) \
  X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuStreamIsCapturing) \
  X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy) \
  X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) \
  X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuLaunchKernel)

#define MSRT_CUBLASLT(X) \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtMatmul) \
  X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) \
  X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) \
  X(cublasLtMatrixLayoutSetAttribute) X(cublasLtMatmulPreferenceCreate) \
  X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute)

#define MSRT_CUDNN(X) \
  X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString) X(cudnnCreate) \
  X(cudnnDestroy) X(cudnnSetStream) \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendSetAttribute) \
  X(cudnnBackendGetAttribute) X(cudnnBackendFinalize) X(cudnnBackendExecute)

#define MSRT_NCCL(X) \
  X(ncclGetVersion) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGetUniqueId) \
  X(ncclCommInitRankConfig) X(ncclCommDestroy) X(ncclCommAbort) X(ncclCommFinalize) \
  X(ncclCommGetAsyncError) \
  X(ncclCommSplit) X(ncclGroupStart) X(ncclGroupEnd) X(ncclSend) X(ncclRecv) X(ncclAllReduce) \
  X(ncclReduceScatter) X(ncclAllGather) X(ncclBroadcast)
// clang-format on

#define MSRT_CUDA_FIELD(f) decltype(&::f) f = nullptr;
struct CudaDriver {
  MSRT_CUDA_DRIVER(MSRT_CUDA_FIELD)
};
struct Cublas {
  MSRT_CUBLASLT(MSRT_CUDA_FIELD)
};
struct Cudnn {
  MSRT_CUDNN(MSRT_CUDA_FIELD)
};
struct Nccl {
  MSRT_NCCL(MSRT_CUDA_FIELD)
};
#undef MSRT_CUDA_FIELD

// The driver is required; each of the others may be absent, and then says why.
struct CudaApi {
  CudaDriver driver;
  Cublas blas;
  Cudnn dnn;
  Nccl nccl;
  // Empty where the library is there; else what is missing: library, path, version, symbol.
  std::string blas_missing, dnn_missing, nccl_missing;
};

// Fills `api` from the libraries of this system. Returns an empty text, or why there is no CUDA
// here: which library, path, version or symbol is missing.
std::string LoadCuda(CudaApi* api);

}  // namespace msrt::cuda
