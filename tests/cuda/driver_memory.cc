// Emulated driver: device memory, pools, pinned memory, copies.
#include <cstdlib>
#include <cstring>

#include "tests/cuda/emulation.h"

namespace msrt::cuda::emulated {
namespace {

// A running capture forbids calls that touch the whole context; the attempt ends it.
CUresult CheckNoCapture() {
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : emulation()->captures) {
    const bool forbids = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                         (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                          capture->thread == std::this_thread::get_id());
    if (!forbids) continue;
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

size_t ReservedBytes(const Device& device) {
  size_t bytes = device.plain_bytes;
  for (const Pool* pool : emulation()->pools) {
    if (pool->device == &device) bytes += pool->reserved;
  }
  return bytes;
}

void Trim(Pool* pool, uint64_t keep) {
  pool->reserved = std::max(pool->used, std::min(pool->reserved, keep));
}

// Whether `bytes` more fit; unused bytes of pools are given back first.
bool Fits(const Device& device, size_t bytes) {
  Emulation& e = *emulation();
  if (ReservedBytes(device) + bytes <= e.options.memory_bytes) return true;
  for (Pool* pool : e.pools) {
    if (pool->device == &device) Trim(pool, 0);
  }
  return ReservedBytes(device) + bytes <= e.options.memory_bytes;
}

void CountUse(Device* device, size_t bytes) {
  ++emulation()->counters.allocations;
  device->used += bytes;
  device->peak = std::max(device->peak, device->used);
}

CUresult FinishFree(const Block& block) {
  const std::string problem = emulation()->memory.Unmap(block);
  if (problem.empty()) return CUDA_SUCCESS;
  emulation()->ReportMisuse(problem);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

// Waits for all work of a device.
void Drain(const Device& device) {
  std::vector<std::shared_ptr<Completion>> ends;
  {
    const std::lock_guard lock(emulation()->mutex);
    for (Stream* stream : emulation()->streams) {
      if (stream->device == &device && stream->capture == nullptr) {
        ends.push_back(stream->PushCompletion());
      }
    }
    for (const auto& stream : emulation()->ended_streams) ends.push_back(stream->PushCompletion());
    ++emulation()->counters.host_waits;
  }
  for (const auto& end : ends) end->Wait();
}

bool IsPool(CUmemoryPool handle) {
  for (const Pool* pool : emulation()->pools) {
    if (reinterpret_cast<CUmemoryPool>(const_cast<Pool*>(pool)) == handle) return true;
  }
  return false;
}
Pool* ToPool(CUmemoryPool pool) { return reinterpret_cast<Pool*>(pool); }

void CountCopy(size_t bytes, bool peer) {
  const Unseen unseen;
  const std::lock_guard lock(emulation()->mutex);
  EmulationCounters& counters = emulation()->counters;
  ++counters.copies;
  counters.copied_bytes += static_cast<int64_t>(bytes);
  if (peer) ++counters.peer_copies;
}

CUresult EnqueueCopy(Stream* stream, void* to, const void* from, size_t bytes, bool peer,
                     std::vector<Block> blocks) {
  return emulation()->Enqueue(
      stream,
      [=](unsigned) {
        CountCopy(bytes, peer);
        memcpy(to, from, bytes);
        return CUDA_SUCCESS;
      },
      std::move(blocks));
}

// Device memory that a copy names wrongly: the error is the driver's, since it looks before.
CUresult BadAddress() { return CUDA_ERROR_INVALID_VALUE; }

}  // namespace

CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  EMULATED_CALL(cuMemGetInfo);
  const Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  const std::lock_guard lock(emulation()->mutex);
  *total_bytes = emulation()->options.memory_bytes;
  *free_bytes = *total_bytes - ReservedBytes(*device);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  EMULATED_CALL(cuMemAlloc);
  Emulation& e = *emulation();
  Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Block block;
  {
    const std::lock_guard lock(e.mutex);
    if (const CUresult error = CheckNoCapture(); error != CUDA_SUCCESS) return error;
    if (!Fits(*device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    block = e.memory.Add(device->index, bytes, nullptr);
    if (block.id == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    device->plain_bytes += bytes;
    CountUse(device, bytes);
  }
  e.memory.Map(block);
  e.memory.Fill(block);
  *pointer = block.address;
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr pointer) {
  const Call call("cuMemFree");
  Emulation& e = *emulation();
  if (pointer == 0) return call.error;
  const Block block = e.memory.Remove(pointer);
  if (block.id == 0) {
    e.ReportMisuse("cuMemFree: no living block begins there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  Device& device = *e.devices[static_cast<size_t>(block.device)];
  {
    const std::lock_guard lock(e.mutex);
    device.used -= block.bytes;
    if (block.pool != nullptr) {
      block.pool->used -= block.bytes;
    } else {
      device.plain_bytes -= block.bytes;
    }
  }
  Drain(device);
  const CUresult result = FinishFree(block);
  if (result != CUDA_SUCCESS) device.SetError(result);
  if (call.error != CUDA_SUCCESS) return call.error;
  return device.error;
}

// ---- pools

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  EMULATED_CALL(cuDeviceGetDefaultMemPool);
  if (device < 0 || device >= emulation()->options.devices) return CUDA_ERROR_INVALID_DEVICE;
  *pool = reinterpret_cast<CUmemoryPool>(
      &emulation()->devices[static_cast<size_t>(device)]->default_pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  EMULATED_CALL(cuMemPoolCreate);
  Emulation& e = *emulation();
  const int device = properties->location.id;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
      device >= e.options.devices) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* created = new Pool;
  created->device = e.devices[static_cast<size_t>(device)].get();
  const std::lock_guard lock(e.mutex);
  e.objects[created] = "memory pool";
  e.pools.push_back(created);
  *pool = reinterpret_cast<CUmemoryPool>(created);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  const Call call("cuMemPoolDestroy");
  Emulation& e = *emulation();
  const std::lock_guard lock(e.mutex);
  if (!e.IsLiving(ToPool(pool), "memory pool")) return CUDA_ERROR_INVALID_HANDLE;
  if (ToPool(pool)->used > 0) {
    e.misuse = "cuMemPoolDestroy: " + std::to_string(ToPool(pool)->used) + " bytes are in use";
    return CUDA_ERROR_INVALID_VALUE;
  }
  e.objects.erase(ToPool(pool));
  std::erase(e.pools, ToPool(pool));
  delete ToPool(pool);
  return call.error;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  EMULATED_CALL(cuMemPoolSetAttribute);
  const std::lock_guard lock(emulation()->mutex);
  if (!IsPool(pool)) return CUDA_ERROR_INVALID_VALUE;
  Pool* p = ToPool(pool);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      p->threshold = *static_cast<uint64_t*>(value);
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      p->peak_reserved = p->reserved;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      p->peak_used = p->used;
      break;
    default:
      break;  // rules of reuse: the emulation never gives a block to another stream early
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  EMULATED_CALL(cuMemPoolGetAttribute);
  const std::lock_guard lock(emulation()->mutex);
  if (!IsPool(pool)) return CUDA_ERROR_INVALID_VALUE;
  const Pool* p = ToPool(pool);
  auto* number = static_cast<uint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *number = p->threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *number = p->reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *number = p->peak_reserved;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *number = p->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *number = p->peak_used;
      break;
    default:
      *static_cast<int*>(value) = 1;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  EMULATED_CALL(cuMemPoolTrimTo);
  const std::lock_guard lock(emulation()->mutex);
  if (!IsPool(pool)) return CUDA_ERROR_INVALID_VALUE;
  Trim(ToPool(pool), keep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, size_t count) {
  EMULATED_CALL(cuMemPoolSetAccess);
  const std::lock_guard lock(emulation()->mutex);
  if (!IsPool(pool)) return CUDA_ERROR_INVALID_VALUE;
  Pool* p = ToPool(pool);
  for (size_t i = 0; i < count; ++i) {
    const int device = access[i].location.id;
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || device < 0 ||
        device >= emulation()->options.devices) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      p->readers.erase(device);
    } else if (emulation()->options.peers || device == p->device->index) {
      p->readers.insert(device);
    } else {
      return CUDA_ERROR_INVALID_DEVICE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  EMULATED_CALL(cuMemAllocFromPoolAsync);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  Block block;
  {
    const std::lock_guard lock(e.mutex);
    if (!IsPool(pool) || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    Pool* p = ToPool(pool);
    if (s->capture != nullptr) {
      s->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    // Free bytes of the pool are used first.
    const uint64_t more = p->used + bytes > p->reserved ? p->used + bytes - p->reserved : 0;
    if (!Fits(*p->device, more)) return CUDA_ERROR_OUT_OF_MEMORY;
    block = e.memory.Add(p->device->index, bytes, p);
    if (block.id == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    p->used += bytes;
    p->reserved = std::max(p->reserved, p->used);
    p->peak_used = std::max(p->peak_used, p->used);
    p->peak_reserved = std::max(p->peak_reserved, p->reserved);
    CountUse(p->device, bytes);
  }
  e.memory.Map(block);
  *pointer = block.address;
  return e.Enqueue(
      s,
      [block](unsigned) {
        emulation()->memory.Fill(block);
        return CUDA_SUCCESS;
      },
      {}, false);
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  const Call call("cuMemFreeAsync");
  if (const CUresult error = CheckStream(stream); error == CUDA_ERROR_INVALID_HANDLE) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  {
    const std::lock_guard lock(e.mutex);
    if (s->capture != nullptr) {
      s->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  const Block block = e.memory.Remove(pointer);
  if (block.id == 0) {
    e.ReportMisuse("cuMemFreeAsync: no living block begins there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  Device& device = *e.devices[static_cast<size_t>(block.device)];
  {
    const std::lock_guard lock(e.mutex);
    device.used -= block.bytes;
    if (block.pool != nullptr) {
      block.pool->used -= block.bytes;
      Trim(block.pool, block.pool->threshold);
    } else {
      device.plain_bytes -= block.bytes;
    }
  }
  s->Push({s->device, nullptr, nullptr, [block](unsigned) { return FinishFree(block); }, false});
  if (call.error != CUDA_SUCCESS) return call.error;
  return s->device->error;
}

// ---- pinned memory

CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  EMULATED_CALL(cuMemHostAlloc);
  const Device* device = CurrentDevice();
  if (device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device->error != CUDA_SUCCESS) return device->error;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(emulation()->mutex);
  if (const CUresult error = CheckNoCapture(); error != CUDA_SUCCESS) return error;
  if (posix_memalign(pointer, 256, bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  ++emulation()->counters.allocations;
  emulation()->pinned[reinterpret_cast<uint64_t>(*pointer)] = bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* pointer) {
  const Call call("cuMemFreeHost");
  Emulation& e = *emulation();
  {
    const std::lock_guard lock(e.mutex);
    if (e.pinned.erase(reinterpret_cast<uint64_t>(pointer)) == 0) {
      e.misuse = "cuMemFreeHost: no pinned memory begins there";
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (const auto& device : e.devices) Drain(*device);
  free(pointer);
  return call.error;
}

// ---- copies

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  EMULATED_CALL(cuMemcpyHtoDAsync);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  if (bytes == 0) return CUDA_SUCCESS;
  Block block;
  if (!e.CheckAccess("cuMemcpyHtoDAsync", *s->device, to, bytes, &block)) return BadAddress();
  void* target = e.memory.ToHost(to);
  if (e.IsPinned(from, bytes)) return EnqueueCopy(s, target, from, bytes, false, {block});
  // The driver copies pageable memory to a staging buffer before it returns.
  auto staging = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                     static_cast<const char*>(from) + bytes);
  {
    const std::lock_guard lock(e.mutex);
    ++e.counters.pageable_copies;
    ++e.counters.host_waits;
    if (s->capture != nullptr) {
      s->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return e.Enqueue(s,
                   [=](unsigned) {
                     CountCopy(bytes, false);
                     memcpy(target, staging->data(), bytes);
                     return CUDA_SUCCESS;
                   },
                   {block});
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  EMULATED_CALL(cuMemcpyDtoHAsync);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  if (bytes == 0) return CUDA_SUCCESS;
  Block block;
  if (!e.CheckAccess("cuMemcpyDtoHAsync", *s->device, from, bytes, &block)) return BadAddress();
  const bool pinned = e.IsPinned(to, bytes);
  if (!pinned) {
    const std::lock_guard lock(e.mutex);
    ++e.counters.pageable_copies;
    ++e.counters.host_waits;
    if (s->capture != nullptr) {
      s->capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  const CUresult error = EnqueueCopy(s, to, e.memory.ToHost(from), bytes, false, {block});
  if (pinned || error != CUDA_SUCCESS) return error;
  s->PushCompletion()->Wait();
  return s->device->error;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  EMULATED_CALL(cuMemcpyDtoDAsync);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  if (bytes == 0) return CUDA_SUCCESS;
  Block target, source;
  if (!e.CheckAccess("cuMemcpyDtoDAsync", *s->device, to, bytes, &target)) return BadAddress();
  if (!e.CheckAccess("cuMemcpyDtoDAsync", *s->device, from, bytes, &source)) return BadAddress();
  return EnqueueCopy(s, e.memory.ToHost(to), e.memory.ToHost(from), bytes,
                     target.device != source.device, {target, source});
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream) {
  EMULATED_CALL(cuMemcpyPeerAsync);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  if (bytes == 0) return CUDA_SUCCESS;
  const auto* to_device = reinterpret_cast<const Device*>(to_context);
  const auto* from_device = reinterpret_cast<const Device*>(from_context);
  if (to_device == nullptr || from_device == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Block target, source;
  if (!e.CheckAccess("cuMemcpyPeerAsync", *to_device, to, bytes, &target) ||
      !e.CheckAccess("cuMemcpyPeerAsync", *from_device, from, bytes, &source) ||
      target.device != to_device->index || source.device != from_device->index) {
    return BadAddress();
  }
  return EnqueueCopy(s, e.memory.ToHost(to), e.memory.ToHost(from), bytes,
                     target.device != source.device, {target, source});
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  EMULATED_CALL(cuMemsetD8Async);
  if (const CUresult error = CheckStream(stream); error != CUDA_SUCCESS) return error;
  Emulation& e = *emulation();
  Stream* s = ToStream(stream);
  if (bytes == 0) return CUDA_SUCCESS;
  Block block;
  if (!e.CheckAccess("cuMemsetD8Async", *s->device, to, bytes, &block)) return BadAddress();
  void* target = e.memory.ToHost(to);
  return e.Enqueue(s,
                   [=](unsigned) {
                     memset(target, value, bytes);
                     return CUDA_SUCCESS;
                   },
                   {block});
}

}  // namespace msrt::cuda::emulated
