// Emulated driver: errors, devices, contexts, modules, functions and launches.
#include <cstring>

#include "tests/cuda/block.h"
#include "tests/cuda/emulation.h"
#include "tests/cuda/kernels.h"

namespace msrt::cuda::emulated {
namespace {

struct Module {
  Device* device;
  std::vector<struct Function*> functions;
};
struct Function {
  const host::Kernel* kernel;
  Device* device;
  std::atomic<int> max_shared{48 << 10};
};

// Contexts that this thread pushed. Those of an earlier emulation do not count.
struct ContextStack {
  uint64_t generation = 0;
  std::vector<Device*> devices;
};
thread_local ContextStack thread_contexts;

ContextStack& Contexts() {
  if (thread_contexts.generation != emulation()->generation) {
    thread_contexts = {emulation()->generation, {}};
  }
  return thread_contexts;
}

Device* ToDevice(CUcontext context) {
  for (const auto& device : emulation()->devices) {
    if (reinterpret_cast<CUcontext>(device.get()) == context) return device.get();
  }
  return nullptr;
}

bool IsDevice(CUdevice device) { return device >= 0 && device < emulation()->options.devices; }

const char* ErrorName(CUresult error) {
#define NAME(e) \
  case e:       \
    return #e;
  switch (error) {
    NAME(CUDA_SUCCESS)
    NAME(CUDA_ERROR_INVALID_VALUE)
    NAME(CUDA_ERROR_OUT_OF_MEMORY)
    NAME(CUDA_ERROR_NOT_INITIALIZED)
    NAME(CUDA_ERROR_NO_DEVICE)
    NAME(CUDA_ERROR_INVALID_DEVICE)
    NAME(CUDA_ERROR_INVALID_CONTEXT)
    NAME(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)
    NAME(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    NAME(CUDA_ERROR_INVALID_HANDLE)
    NAME(CUDA_ERROR_NOT_FOUND)
    NAME(CUDA_ERROR_NOT_READY)
    NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    NAME(CUDA_ERROR_LAUNCH_FAILED)
    NAME(CUDA_ERROR_NOT_SUPPORTED)
    NAME(CUDA_ERROR_ECC_UNCORRECTABLE)
    NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    NAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
    NAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    NAME(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
    NAME(CUDA_ERROR_CAPTURED_EVENT)
    NAME(CUDA_ERROR_UNKNOWN)
    default:
      return nullptr;
  }
#undef NAME
}

int Attribute(CUdevice_attribute attribute) {
  const Properties& p = PropertiesOf(emulation()->options.compute_capability);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return p.capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return p.capability % 10;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return p.processors;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return p.threads_of_processor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return p.shared_of_block;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return p.shared_of_processor;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return p.capability < 80 ? 0 : 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return p.capability < 80 ? 16 : 32;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return p.clock_khz;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return p.memory_clock_khz;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return p.bus_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return p.cache_bytes;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

Device* CurrentDevice() {
  ContextStack& contexts = Contexts();
  return contexts.devices.empty() ? nullptr : contexts.devices.back();
}

CUresult cuInit(unsigned flags) {
  EMULATED_CALL(cuInit);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  emulation()->is_initialized = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = ErrorName(error);
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = ErrorName(error) == nullptr ? nullptr : "emulated";
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  EMULATED_CALL(cuDeviceGetCount);
  if (!emulation()->is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  *count = emulation()->options.devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  EMULATED_CALL(cuDeviceGet);
  if (!emulation()->is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  EMULATED_CALL(cuDeviceGetName);
  if (!IsDevice(device) || bytes < 1) return CUDA_ERROR_INVALID_DEVICE;
  const std::string text = PropertiesOf(emulation()->options.compute_capability).name;
  const size_t length = std::min(text.size(), static_cast<size_t>(bytes) - 1);
  memcpy(name, text.data(), length);
  name[length] = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  EMULATED_CALL(cuDeviceGetAttribute);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : Attribute(attribute);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  EMULATED_CALL(cuDeviceTotalMem);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = emulation()->options.memory_bytes;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  EMULATED_CALL(cuDeviceGetUuid);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  memset(uuid, 0, sizeof *uuid);
  uuid->bytes[0] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  EMULATED_CALL(cuDeviceCanAccessPeer);
  if (!IsDevice(device) || !IsDevice(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer && emulation()->options.peers;
  return CUDA_SUCCESS;
}

// ---- contexts

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  EMULATED_CALL(cuDevicePrimaryCtxRetain);
  if (!emulation()->is_initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device& d = *emulation()->devices[static_cast<size_t>(device)];
  const std::lock_guard lock(emulation()->mutex);
  if (d.error != CUDA_SUCCESS) return d.error;
  ++d.retained;
  *context = reinterpret_cast<CUcontext>(&d);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const Call call("cuDevicePrimaryCtxRelease");
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Device& d = *emulation()->devices[static_cast<size_t>(device)];
  const std::lock_guard lock(emulation()->mutex);
  if (d.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  // A new context has none of the old one's errors, unless the device itself is lost.
  if (--d.retained == 0 && !d.is_lost) d.error = CUDA_SUCCESS;
  return call.error;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  EMULATED_CALL(cuCtxPushCurrent);
  Device* device = ToDevice(context);
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  {
    const std::lock_guard lock(emulation()->mutex);
    if (device->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  }
  Contexts().devices.push_back(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  const Call call("cuCtxPopCurrent");
  ContextStack& contexts = Contexts();
  if (contexts.devices.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = reinterpret_cast<CUcontext>(contexts.devices.back());
  contexts.devices.pop_back();
  return call.error;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  EMULATED_CALL(cuCtxGetStreamPriorityRange);
  if (CurrentDevice() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  EMULATED_CALL(cuCtxEnablePeerAccess);
  Device *device = CurrentDevice(), *other = ToDevice(peer);
  if (device == nullptr || other == nullptr || device == other) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!emulation()->options.peers) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::lock_guard lock(emulation()->mutex);
  return device->peers.insert(other->index).second ? CUDA_SUCCESS
                                                   : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

// ---- modules

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  EMULATED_CALL(cuModuleLoadData);
  Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* loaded = new Module{device, {}};
  const std::lock_guard lock(emulation()->mutex);
  ++emulation()->counters.modules_loaded;
  emulation()->objects[loaded] = "module";
  *module = reinterpret_cast<CUmodule>(loaded);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  const Call call("cuModuleUnload");
  const std::lock_guard lock(emulation()->mutex);
  auto* loaded = reinterpret_cast<Module*>(module);
  if (!emulation()->IsLiving(loaded, "module")) return CUDA_ERROR_INVALID_HANDLE;
  emulation()->objects.erase(loaded);
  for (Function* function : loaded->functions) delete function;
  delete loaded;
  return call.error;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  EMULATED_CALL(cuModuleGetFunction);
  const host::Kernel* kernel = FindKernel(name);
  const std::lock_guard lock(emulation()->mutex);
  auto* loaded = reinterpret_cast<Module*>(module);
  if (!emulation()->IsLiving(loaded, "module")) return CUDA_ERROR_INVALID_HANDLE;
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  for (Function* known : loaded->functions) {
    if (known->kernel == kernel) {
      *function = reinterpret_cast<CUfunction>(known);
      return CUDA_SUCCESS;
    }
  }
  loaded->functions.push_back(new Function{kernel, loaded->device});
  *function = reinterpret_cast<CUfunction>(loaded->functions.back());
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  EMULATED_CALL(cuFuncGetAttribute);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto* f = reinterpret_cast<const Function*>(function);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = f->kernel->max_threads;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = f->max_shared;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = emulation()->options.compute_capability;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  EMULATED_CALL(cuFuncSetAttribute);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const int limit = PropertiesOf(emulation()->options.compute_capability).shared_of_block;
    if (value < 0 || value > limit) return CUDA_ERROR_INVALID_VALUE;
    reinterpret_cast<Function*>(function)->max_shared = value;
  }
  return CUDA_SUCCESS;
}

// ---- launches

namespace {

// The arguments of a launch with pointers that the host can follow.
struct Arguments {
  std::vector<std::vector<uint64_t>> words;  // one for each argument
  std::vector<void*> pointers;
  std::vector<Block> blocks;
};

// Every word that looks like a device pointer must point into a living block that the device may
// access. Numbers do not: the windows are far from any size or float.
std::string Translate(const Function& function, void** values, const Device& device,
                      Arguments* out) {
  Emulation& e = *emulation();
  const host::Kernel& kernel = *function.kernel;
  for (int a = 0; a < kernel.arguments; ++a) {
    const size_t bytes = kernel.argument_bytes[a];
    auto& words = out->words.emplace_back((bytes + 15) / 16 * 2);
    memcpy(words.data(), values[a], bytes);
    for (size_t i = 0; i < bytes / 8; ++i) {
      if (!e.memory.InWindow(words[i])) continue;
      Block block;
      if (!e.CheckAccess(kernel.name, device, words[i], 0, &block)) {
        const std::string text = "argument " + std::to_string(a) + " of " + e.misuse;
        e.ReportMisuse(text);
        return text;
      }
      out->blocks.push_back(block);
      words[i] = reinterpret_cast<uint64_t>(e.memory.ToHost(words[i]));
    }
  }
  for (auto& words : out->words) out->pointers.push_back(words.data());
  return "";
}

void* TranslateInKernel(const void* pointer) {
  const Unseen unseen;
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  const DeviceMemory& memory = emulation()->memory;
  if (!memory.InWindow(address)) return const_cast<void*>(pointer);  // null, or pinned
  return memory.Find(address).id == 0 ? nullptr : memory.ToHost(address);
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void** values, void** extra) {
  EMULATED_CALL(cuLaunchKernel);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Emulation& e = *emulation();
  Stream& s = *ToStream(stream);
  const auto& f = *reinterpret_cast<const Function*>(function);
  if (CurrentDevice() != s.device || f.device != s.device) {
    e.ReportMisuse(std::string(f.kernel->name) +
                   ": the stream, the module and the current context "
                   "belong to different devices");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const uint64_t threads = uint64_t{block_x} * block_y * block_z;
  const int opted = f.max_shared;
  if (extra != nullptr || grid_x == 0 || grid_y == 0 || grid_z == 0 || threads == 0 ||
      grid_x > 0x7fffffff || grid_y > 65535 || grid_z > 65535 || block_z > 64 || threads > 1024 ||
      shared_bytes > static_cast<unsigned>(opted) ||
      (values == nullptr && f.kernel->arguments > 0)) {
    e.ReportMisuse(std::string(f.kernel->name) + ": grid, block or shared memory out of range");
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (threads > static_cast<uint64_t>(f.kernel->max_threads)) {
    e.ReportMisuse(std::string(f.kernel->name) + ": more threads than it is bounded to");
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  auto arguments = std::make_shared<Arguments>();
  const std::string problem = Translate(f, values, *s.device, arguments.get());
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  const host::Kernel* kernel = f.kernel;
  Work work = [arguments, problem, shape, kernel](unsigned seed) {
    {
      const Unseen unseen;
      const std::lock_guard lock(emulation()->mutex);
      ++emulation()->counters.launches;
    }
    // As on the GPU, a wrong address is noticed when the kernel runs.
    if (!problem.empty()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const EmulationOptions& o = emulation()->options;
    const std::string error =
        RunKernel(*kernel, arguments->pointers.data(), shape,
                  {seed, o.shuffle_threads, o.check_races, &TranslateInKernel});
    if (error.empty()) return CUDA_SUCCESS;
    emulation()->ReportMisuse(error);
    return CUDA_ERROR_LAUNCH_FAILED;
  };
  std::vector<Block> blocks = arguments->blocks;
  return e.Enqueue(&s, std::move(work), std::move(blocks));
}

}  // namespace msrt::cuda::emulated
