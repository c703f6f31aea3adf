#include "delegates/cuda/gpu.h"

#include <algorithm>

#include "delegates/cuda/kernel_image.h"

namespace msrt::cuda {
namespace {

// Errors after which every call with this context fails, as the driver documents them.
bool EndsContext(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

}  // namespace

double GpuProperties::PlainFlops() const {
  // f32 units of a multiprocessor: 64 in T4 and A100, 128 in the others.
  const double lanes = major < 8 || (major == 8 && minor == 0) ? 64 : 128;
  return 2 * lanes * multiprocessors * clock_hz;
}

double GpuProperties::FlopsOf(DType type) const {
  // Dense multiply-adds of tensor cores a clock and multiprocessor, in f16 and bf16.
  const double half = major < 8                  ? 512
                      : major == 8 && minor == 0 ? 1024
                      : major == 8               ? 512
                      : major == 9               ? 2048
                      : major == 10              ? 4096
                                                 : 1024;
  const double base = 2 * multiprocessors * clock_hz;
  switch (type) {
    case DType::kF16:
      return base * half;
    case DType::kBF16:
      return major < 8 ? PlainFlops() : base * half;
    case DType::kI8:
    case DType::kU8:
      return base * half * 2;
    case DType::kF64:
      return PlainFlops() / (minor == 0 && major >= 8 && major <= 10 ? 2 : 64);
    default:
      return PlainFlops();
  }
}

Gpu::Gpu(std::shared_ptr<const CudaApi> api, int ordinal, const GpuOptions& options)
    : api_(std::move(api)), ordinal_(ordinal), options_(options), name_(StrCat("cuda", ordinal)) {}

Result<std::shared_ptr<Gpu>> Gpu::Open(std::shared_ptr<const CudaApi> api, int ordinal,
                                       const GpuOptions& options) {
  std::shared_ptr<Gpu> gpu(new Gpu(std::move(api), ordinal, options));
  MSRT_RETURN_IF_ERROR(gpu->Init());
  return gpu;
}

Gpu::~Gpu() {
  if (context_ == nullptr) return;
  if (!lost()) {
    const Scope scope(*this);
    if (blas_ != nullptr) (void)api().blas.cublasLtDestroy(blas_);
    for (const auto& [file, module] : modules_) (void)driver().cuModuleUnload(module);
    if (memory_stream_ != nullptr) {
      (void)driver().cuStreamSynchronize(memory_stream_);
      (void)driver().cuStreamDestroy(memory_stream_);
    }
    if (pool_ != nullptr) (void)driver().cuMemPoolDestroy(pool_);
  }
  (void)driver().cuDevicePrimaryCtxRelease(device_);
}

Status Gpu::Init() {
  MSRT_RETURN_IF_ERROR(Check(driver().cuDeviceGet(&device_, ordinal_), "cuDeviceGet"));
  MSRT_RETURN_IF_ERROR(ReadProperties());
  MSRT_RETURN_IF_ERROR(
      Check(driver().cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain"));
  const Scope scope(*this);
  MSRT_RETURN_IF_ERROR(MakePool());
  // One image shows whether the GPU can run any of them.
  std::lock_guard lock(mutex_);
  return Module("copy").status();
}

Status Gpu::ReadProperties() {
  char text[256] = "";
  MSRT_RETURN_IF_ERROR(
      Check(driver().cuDeviceGetName(text, sizeof text - 1, device_), "cuDeviceGetName"));
  properties_.name = text;
  properties_.blas_missing = api_->blas_missing;
  MSRT_RETURN_IF_ERROR(
      Check(driver().cuDeviceTotalMem(&properties_.total_bytes, device_), "cuDeviceTotalMem"));
  // An attribute that a driver does not know is as good as unknown: the estimates below replace it.
  const auto attribute = [&](CUdevice_attribute which, int otherwise) {
    int value = 0;
    const bool known = driver().cuDeviceGetAttribute(&value, which, device_) == CUDA_SUCCESS;
    return known && value > 0 ? value : otherwise;
  };
  properties_.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  properties_.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  properties_.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 40);
  properties_.clock_hz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1500000) * 1e3;
  // Data move on both edges of the memory's clock.
  const double memory_hz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0) * 1e3,
               bus_bytes = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 0) / 8.0;
  properties_.bytes_per_second = 2 * memory_hz * bus_bytes;
  if (properties_.bytes_per_second <= 0)
    properties_.bytes_per_second = properties_.major >= 9 ? 2e12 : 5e11;
  return OkStatus();
}

Status Gpu::MakePool() {
  MSRT_RETURN_IF_ERROR(
      Check(driver().cuStreamCreateWithPriority(&memory_stream_, CU_STREAM_NON_BLOCKING, 0),
            "cuStreamCreateWithPriority"));
  int has_pools = 0;
  (void)driver().cuDeviceGetAttribute(&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                      device_);
  if (has_pools == 0) return OkStatus();
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = ordinal_;
  MSRT_RETURN_IF_ERROR(Check(driver().cuMemPoolCreate(&pool_, &props), "cuMemPoolCreate"));
  cuuint64_t keep = options_.keep_bytes;
  return Check(driver().cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
               "cuMemPoolSetAttribute");
}

Status Gpu::Check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return OkStatus();
  const char *name = nullptr, *text = nullptr;
  (void)driver().cuGetErrorName(result, &name);
  (void)driver().cuGetErrorString(result, &text);
  std::string message =
      StrCat(name_, properties_.name.empty() ? "" : StrCat(" (", properties_.name, ")"), ": ", call,
             ": ", name != nullptr ? name : StrCat("error ", static_cast<int>(result)),
             text != nullptr ? StrCat(": ", text) : "");
  if (EndsContext(result)) {
    std::lock_guard lock(lost_mutex_);
    if (lost_text_.empty()) lost_text_ = message;
    lost_.store(true, std::memory_order_relaxed);
    StrAppend(&message, "; the GPU is not used any more");
  }
  return Status(result == CUDA_ERROR_OUT_OF_MEMORY ? Code::kOutOfMemory : Code::kDelegate,
                std::move(message));
}

Status Gpu::Alive() const {
  if (!lost()) return OkStatus();
  std::lock_guard lock(lost_mutex_);
  return DelegateError("the GPU was lost earlier: ", lost_text_);
}

// ---- memory -------------------------------------------------------------------------------------

Result<void*> Gpu::TryAllocate(size_t bytes) {
  CUdeviceptr pointer = 0;
  if (pool_ == nullptr) {
    MSRT_RETURN_IF_ERROR(Check(driver().cuMemAlloc(&pointer, bytes), "cuMemAlloc"));
  } else {
    MSRT_RETURN_IF_ERROR(
        Check(driver().cuMemAllocFromPoolAsync(&pointer, bytes, pool_, memory_stream_),
              "cuMemAllocFromPoolAsync"));
    // Other streams may use the memory as soon as the allocation has happened in its own stream,
    // where nothing else runs.
    const CUresult result = driver().cuStreamSynchronize(memory_stream_);
    if (result != CUDA_SUCCESS) {
      (void)driver().cuMemFreeAsync(pointer, memory_stream_);
      return Check(result, "cuStreamSynchronize");
    }
  }
  return reinterpret_cast<void*>(pointer);
}

Result<void*> Gpu::Allocate(size_t bytes) {
  MSRT_RETURN_IF_ERROR(Alive());
  bytes = std::max<size_t>(bytes, 1);  // an empty block has an address, too
  {
    std::lock_guard lock(mutex_);
    if (options_.memory_limit != 0 && bytes > options_.memory_limit - used_)
      return LimitExceeded(name_, ": ", bytes, " bytes more than the ", used_,
                           " in use exceed the limit of ", options_.memory_limit);
    used_ += bytes;
  }
  const Scope scope(*this);
  Result<void*> memory = TryAllocate(bytes);
  if (!memory.ok() && memory.status().code() == Code::kOutOfMemory && pool_ != nullptr) {
    // The pool's freed blocks may be too small for this one.
    (void)driver().cuMemPoolTrimTo(pool_, 0);
    memory = TryAllocate(bytes);
  }
  if (!memory.ok()) {
    std::lock_guard lock(mutex_);
    used_ -= bytes;
  }
  return memory;
}

void Gpu::Free(void* pointer, size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    used_ -= std::max<size_t>(bytes, 1);
  }
  if (lost()) return;  // its memory went with the context
  const Scope scope(*this);
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  // Nobody to tell: a failure to free is the driver's, and the next call reports it.
  if (pool_ == nullptr) (void)driver().cuMemFree(address);
  else (void)driver().cuMemFreeAsync(address, memory_stream_);
}

Status Gpu::Upload(void* to, const void* from, size_t bytes) {
  MSRT_RETURN_IF_ERROR(Alive());
  if (bytes == 0) return OkStatus();
  const Scope scope(*this);
  MSRT_RETURN_IF_ERROR(Check(
      driver().cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to), from, bytes, memory_stream_),
      "cuMemcpyHtoDAsync"));
  return Check(driver().cuStreamSynchronize(memory_stream_), "cuStreamSynchronize");
}

Result<PoolReport> Gpu::Report() const {
  MSRT_RETURN_IF_ERROR(Alive());
  PoolReport report;
  if (pool_ == nullptr) {
    std::lock_guard lock(mutex_);
    report.used = report.reserved = report.peak = used_;
    return report;
  }
  const Scope scope(*this);
  const auto read = [&](CUmemPool_attribute which, size_t* to) {
    cuuint64_t value = 0;
    const CUresult result = driver().cuMemPoolGetAttribute(pool_, which, &value);
    *to = value;
    return Check(result, "cuMemPoolGetAttribute");
  };
  MSRT_RETURN_IF_ERROR(read(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &report.used));
  MSRT_RETURN_IF_ERROR(read(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &report.reserved));
  MSRT_RETURN_IF_ERROR(read(CU_MEMPOOL_ATTR_USED_MEM_HIGH, &report.peak));
  return report;
}

Result<size_t> Gpu::FreeBytes() {
  MSRT_RETURN_IF_ERROR(Alive());
  size_t free = 0, total = 0;
  {
    const Scope scope(*this);
    MSRT_RETURN_IF_ERROR(Check(driver().cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  }
  MSRT_ASSIGN_OR_RETURN(const PoolReport pool, Report());
  free += pool.reserved - std::min(pool.used, pool.reserved);
  std::lock_guard lock(mutex_);
  return options_.memory_limit == 0
             ? free
             : std::min(free, options_.memory_limit - std::min(used_, options_.memory_limit));
}

Status Gpu::Trim(size_t keep) {
  MSRT_RETURN_IF_ERROR(Alive());
  if (pool_ == nullptr) return OkStatus();
  const Scope scope(*this);
  MSRT_RETURN_IF_ERROR(Check(driver().cuStreamSynchronize(memory_stream_), "cuStreamSynchronize"));
  return Check(driver().cuMemPoolTrimTo(pool_, keep), "cuMemPoolTrimTo");
}

// ---- peers and kernels --------------------------------------------------------------------------

bool Gpu::Reaches(const Gpu& peer) const {
  int can = 0;
  return driver().cuDeviceCanAccessPeer(&can, device_, peer.device_) == CUDA_SUCCESS && can != 0;
}

Status Gpu::ConnectPeer(const Gpu& peer) {
  if (!Reaches(peer)) return OkStatus();
  const Scope scope(*this);
  const CUresult result = driver().cuCtxEnablePeerAccess(peer.context_, 0);
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    MSRT_RETURN_IF_ERROR(Check(result, "cuCtxEnablePeerAccess"));
  // Memory of a pool needs leave of its own.
  if (peer.pool_ == nullptr) return OkStatus();
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = ordinal_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return Check(driver().cuMemPoolSetAccess(peer.pool_, &access, 1), "cuMemPoolSetAccess");
}

Result<CUmodule> Gpu::Module(const char* file) {
  if (const auto it = modules_.find(std::string_view(file)); it != modules_.end())
    return it->second;
  const void* image = KernelImage(file);
  if (image == nullptr) return InternalError("there are no kernels '", file, "'");
  CUmodule module = nullptr;
  const CUresult loaded = driver().cuModuleLoadData(&module, image);
  if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU)
    return Unsupported(name_, " (", properties_.name, ") has compute capability ",
                       properties_.major, ".", properties_.minor,
                       ", the kernels are built for 7.5 and newer");
  MSRT_RETURN_IF_ERROR(Check(loaded, StrCat("cuModuleLoadData(", file, ")").c_str()));
  modules_.emplace(file, module);
  return module;
}

Result<CUfunction> Gpu::Function(const char* file, const char* name) {
  std::lock_guard lock(mutex_);
  if (const auto it = functions_.find(std::string_view(name)); it != functions_.end())
    return it->second;
  MSRT_RETURN_IF_ERROR(Alive());
  const Scope scope(*this);
  MSRT_ASSIGN_OR_RETURN(CUmodule module, Module(file));
  CUfunction function = nullptr;
  MSRT_RETURN_IF_ERROR(Check(driver().cuModuleGetFunction(&function, module, name),
                             StrCat("cuModuleGetFunction(", name, ")").c_str()));
  functions_.emplace(name, function);
  return function;
}

Status Gpu::CheckBlas(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  return Status(status == CUBLAS_STATUS_ALLOC_FAILED ? Code::kOutOfMemory : Code::kDelegate,
                StrCat(name_, " (", properties_.name, "): ", call, ": cuBLAS status ",
                       static_cast<int>(status)));
}

Result<cublasLtHandle_t> Gpu::Blas() {
  std::lock_guard lock(mutex_);
  if (blas_ != nullptr) return blas_;
  if (!api_->blas_missing.empty()) return DelegateError("no cuBLASLt: ", api_->blas_missing);
  MSRT_RETURN_IF_ERROR(Alive());
  const Scope scope(*this);
  MSRT_RETURN_IF_ERROR(CheckBlas(api().blas.cublasLtCreate(&blas_), "cublasLtCreate"));
  return blas_;
}

}  // namespace msrt::cuda
