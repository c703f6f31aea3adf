#include "delegates/cuda/device.h"

#include <algorithm>
#include <new>

#include "delegates/cuda/convert.h"
#include "delegates/cuda/stream.h"

namespace msrt::cuda {
namespace {

constexpr int32_t kDlpackCuda = 2;  // kDLCUDA
// Times of a launch and of a small copy on current hardware; rates of PCIe 4 and of copies between
// GPUs without and with a direct path. `msrun calibrate` measures them.
constexpr double kLaunchSeconds = 5e-6, kCopySeconds = 1e-5;
constexpr double kHostBytesPerSecond = 2e10, kStagedBytesPerSecond = 8e9,
                 kPeerBytesPerSecond = 2.5e10;

struct Handle {
  std::shared_ptr<Gpu> gpu;
};
const std::shared_ptr<Gpu>& GpuOf(void* self) { return static_cast<Handle*>(self)->gpu; }

struct Event {
  CUevent handle = nullptr;
  // Of the stream that recorded it last; the stream may be gone by the time somebody waits.
  std::shared_ptr<FaultWord> fault;
};

struct Recording {
  CUgraphExec handle = nullptr;
  std::shared_ptr<FaultWord> fault;
};

Stream& StreamOf(void* stream) { return *static_cast<Stream*>(stream); }

// Runs `body` with the GPU's context, if it is alive. No exception may pass the C interface.
template <typename F>
msrt_status Guarded(void* self, const msrt_host_api* host, F&& body) {
  try {
    const std::shared_ptr<Gpu>& gpu = GpuOf(self);
    Status status = gpu->Alive();
    if (status.ok()) {
      const Gpu::Scope scope(*gpu);
      status = body(*gpu);
    }
    if (!status.ok() && host != nullptr) host->fail(host->host, status.message().c_str());
    return static_cast<msrt_status>(status.code());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// ---- memory -------------------------------------------------------------------------------------

msrt_status Memory(void* self, size_t* bytes) {
  return Guarded(self, nullptr, [&](Gpu& gpu) -> Status {
    MSRT_ASSIGN_OR_RETURN(*bytes, gpu.FreeBytes());
    return OkStatus();
  });
}

msrt_status Allocate(void* self, const msrt_host_api* host, size_t bytes, void** out) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    MSRT_ASSIGN_OR_RETURN(*out, gpu.Allocate(bytes));
    return OkStatus();
  });
}

void Deallocate(void* self, void* pointer, size_t bytes) { GpuOf(self)->Free(pointer, bytes); }

msrt_status HostAllocate(void* self, const msrt_host_api* host, size_t bytes, void** out) {
  return Guarded(self, host, [&](Gpu& gpu) {
    return gpu.Check(
        gpu.driver().cuMemHostAlloc(out, std::max<size_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE),
        "cuMemHostAlloc");
  });
}

void HostDeallocate(void* self, void* pointer, size_t) {
  const Gpu& gpu = *GpuOf(self);
  if (gpu.lost()) return;
  const Gpu::Scope scope(gpu);
  (void)gpu.driver().cuMemFreeHost(pointer);
}

// ---- streams ------------------------------------------------------------------------------------

msrt_status StreamCreate(void* self, const msrt_host_api* host, int32_t priority, void** out) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    auto stream = std::make_unique<Stream>();
    stream->gpu = GpuOf(self);
    MSRT_ASSIGN_OR_RETURN(stream->fault, FaultWord::Make(GpuOf(self)));
    // The driver's numbers are the other way round: the least is the most urgent.
    int least = 0, greatest = 0;
    MSRT_RETURN_IF_ERROR(gpu.Check(gpu.driver().cuCtxGetStreamPriorityRange(&least, &greatest),
                                   "cuCtxGetStreamPriorityRange"));
    const int64_t wanted = std::clamp<int64_t>(-int64_t{priority}, greatest, least);
    MSRT_RETURN_IF_ERROR(
        gpu.Check(gpu.driver().cuStreamCreateWithPriority(&stream->handle, CU_STREAM_NON_BLOCKING,
                                                          static_cast<int>(wanted)),
                  "cuStreamCreateWithPriority"));
    *out = stream.release();
    return OkStatus();
  });
}

void StreamDestroy(void*, void* handle) {
  const std::unique_ptr<Stream> stream(static_cast<Stream*>(handle));
  if (stream->gpu->lost()) return;
  const Gpu::Scope scope(*stream->gpu);
  (void)stream->gpu->driver().cuStreamDestroy(stream->handle);
}

msrt_status StreamSynchronize(void* self, const msrt_host_api* host, void* stream) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    Stream& s = StreamOf(stream);
    MSRT_RETURN_IF_ERROR(
        gpu.Check(gpu.driver().cuStreamSynchronize(s.handle), "cuStreamSynchronize"));
    return s.TakeFaults();
  });
}

msrt_status CopyToDevice(void* self, const msrt_host_api* host, void* stream, void* to,
                         const void* from, size_t bytes) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    if (bytes == 0) return OkStatus();
    return gpu.Check(
        gpu.driver().cuMemcpyHtoDAsync(Address(to), from, bytes, StreamOf(stream).handle),
        "cuMemcpyHtoDAsync");
  });
}

msrt_status CopyToHost(void* self, const msrt_host_api* host, void* stream, void* to,
                       const void* from, size_t bytes) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    if (bytes == 0) return OkStatus();
    return gpu.Check(
        gpu.driver().cuMemcpyDtoHAsync(to, Address(from), bytes, StreamOf(stream).handle),
        "cuMemcpyDtoHAsync");
  });
}

msrt_status CopyPeer(void* self, const msrt_host_api* host, void* stream, void* to, void* from_self,
                     const void* from, size_t bytes) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    if (bytes == 0) return OkStatus();
    const Gpu& source = *GpuOf(from_self);
    const CUstream handle = StreamOf(stream).handle;
    if (&source == &gpu)
      return gpu.Check(gpu.driver().cuMemcpyDtoDAsync(Address(to), Address(from), bytes, handle),
                       "cuMemcpyDtoDAsync");
    return gpu.Check(gpu.driver().cuMemcpyPeerAsync(Address(to), gpu.context(), Address(from),
                                                    source.context(), bytes, handle),
                     "cuMemcpyPeerAsync");
  });
}

msrt_status PeerCost(void* self, void* from_self, double* seconds, double* bytes_per_second) {
  const Gpu &gpu = *GpuOf(self), &source = *GpuOf(from_self);
  *seconds = &gpu == &source ? kLaunchSeconds : kCopySeconds;
  // GPUs of two separately loaded drivers share the functions, but know nothing of each other.
  if (&gpu.api() != &source.api()) *bytes_per_second = 0;
  else if (&gpu == &source) *bytes_per_second = gpu.properties().bytes_per_second / 2;
  else *bytes_per_second = gpu.Reaches(source) ? kPeerBytesPerSecond : kStagedBytesPerSecond;
  return MSRT_OK;
}

msrt_status Convert(void* self, const msrt_host_api* host, void* stream, const msrt_shape* shape,
                    msrt_layout from_layout, const void* from, msrt_layout to_layout, void* to) {
  return Guarded(self, host, [&](Gpu&) {
    return EnqueueConversion(StreamOf(stream), *shape, static_cast<Layout>(from_layout), from,
                             static_cast<Layout>(to_layout), to);
  });
}

// ---- events -------------------------------------------------------------------------------------

msrt_status EventCreate(void* self, const msrt_host_api* host, void** out) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    auto event = std::make_unique<Event>();
    MSRT_RETURN_IF_ERROR(gpu.Check(
        gpu.driver().cuEventCreate(&event->handle, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
    *out = event.release();
    return OkStatus();
  });
}

void EventDestroy(void* self, void* handle) {
  const std::unique_ptr<Event> event(static_cast<Event*>(handle));
  const Gpu& gpu = *GpuOf(self);
  if (gpu.lost()) return;
  const Gpu::Scope scope(gpu);
  (void)gpu.driver().cuEventDestroy(event->handle);
}

msrt_status EventRecord(void* self, const msrt_host_api* host, void* event, void* stream) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    Event& e = *static_cast<Event*>(event);
    e.fault = StreamOf(stream).fault;
    return gpu.Check(gpu.driver().cuEventRecord(e.handle, StreamOf(stream).handle),
                     "cuEventRecord");
  });
}

msrt_status EventWait(void* self, const msrt_host_api* host, void* event) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    const Event& e = *static_cast<Event*>(event);
    MSRT_RETURN_IF_ERROR(
        gpu.Check(gpu.driver().cuEventSynchronize(e.handle), "cuEventSynchronize"));
    return e.fault == nullptr ? OkStatus() : e.fault->Take();
  });
}

msrt_status StreamWaitEvent(void* self, const msrt_host_api* host, void* stream, void* event) {
  return Guarded(self, host, [&](Gpu& gpu) {
    return gpu.Check(gpu.driver().cuStreamWaitEvent(StreamOf(stream).handle,
                                                    static_cast<Event*>(event)->handle, 0),
                     "cuStreamWaitEvent");
  });
}

// ---- recordings ---------------------------------------------------------------------------------

msrt_status CaptureBegin(void* self, const msrt_host_api* host, void* stream) {
  return Guarded(self, host, [&](Gpu& gpu) {
    // Other threads may allocate meanwhile: the host records nothing but what it enqueues.
    return gpu.Check(
        gpu.driver().cuStreamBeginCapture(StreamOf(stream).handle, CU_STREAM_CAPTURE_MODE_RELAXED),
        "cuStreamBeginCapture");
  });
}

msrt_status CaptureEnd(void* self, const msrt_host_api* host, void* stream, void** out) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    const CudaDriver& driver = gpu.driver();
    CUgraph graph = nullptr;
    MSRT_RETURN_IF_ERROR(gpu.Check(driver.cuStreamEndCapture(StreamOf(stream).handle, &graph),
                                   "cuStreamEndCapture"));
    auto recording = std::make_unique<Recording>();
    recording->fault = StreamOf(stream).fault;
    Status status =
        gpu.Check(driver.cuGraphInstantiate(&recording->handle, graph, 0), "cuGraphInstantiate");
    (void)driver.cuGraphDestroy(graph);
    if (status.ok()) *out = recording.release();
    return status;
  });
}

msrt_status RecordingRun(void* self, const msrt_host_api* host, void* recording, void* stream) {
  return Guarded(self, host, [&](Gpu& gpu) -> Status {
    const Recording& r = *static_cast<Recording*>(recording);
    Stream& s = StreamOf(stream);
    if (r.fault != s.fault &&
        std::find(s.replayed.begin(), s.replayed.end(), r.fault) == s.replayed.end())
      s.replayed.push_back(r.fault);
    return gpu.Check(gpu.driver().cuGraphLaunch(r.handle, s.handle), "cuGraphLaunch");
  });
}

void RecordingDestroy(void* self, void* handle) {
  const std::unique_ptr<Recording> recording(static_cast<Recording*>(handle));
  const Gpu& gpu = *GpuOf(self);
  if (gpu.lost()) return;
  const Gpu::Scope scope(gpu);
  (void)gpu.driver().cuGraphExecDestroy(recording->handle);
}

}  // namespace

ExportedDevice ExportDevice(std::shared_ptr<Gpu> gpu) {
  msrt_device_api api = MSRT_INIT(msrt_device_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = gpu->name().c_str();
  api.destroy = [](void* self) { delete static_cast<Handle*>(self); };
  api.dlpack_type = kDlpackCuda;
  api.dlpack_id = gpu->ordinal();
  api.launch_seconds = kLaunchSeconds;
  api.copy_seconds = kCopySeconds;
  api.copy_bytes_per_second = kHostBytesPerSecond;
  api.memory = Memory;
  api.allocate = Allocate;
  api.deallocate = Deallocate;
  api.stream_create = StreamCreate;
  api.stream_destroy = StreamDestroy;
  api.stream_synchronize = StreamSynchronize;
  api.copy_to_device = CopyToDevice;
  api.copy_to_host = CopyToHost;
  api.event_create = EventCreate;
  api.event_destroy = EventDestroy;
  api.event_record = EventRecord;
  api.event_wait = EventWait;
  api.stream_wait_event = StreamWaitEvent;
  api.copy_peer = CopyPeer;
  api.peer_cost = PeerCost;
  api.host_allocate = HostAllocate;
  api.host_deallocate = HostDeallocate;
  api.convert = Convert;
  api.capture_begin = CaptureBegin;
  api.capture_end = CaptureEnd;
  api.recording_run = RecordingRun;
  api.recording_destroy = RecordingDestroy;
  return {api, new Handle{std::move(gpu)}};
}

}  // namespace msrt::cuda
