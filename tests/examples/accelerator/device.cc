#include "tests/examples/accelerator/device.h"

#include <cstring>
#include <memory>

#include "tests/examples/accelerator/accelerator.h"
#include "tests/examples/accelerator/stream.h"

namespace accelerator {
namespace {

// No exception may pass the C interface.
template <typename F>
msrt_status Guarded(const msrt_host_api* host, F&& body) {
  try {
    return Tell(host, body());
  } catch (const std::bad_alloc&) {
    return MSRT_OUT_OF_MEMORY;
  }
}

msrt_status Memory(void* self, size_t* bytes) {
  if (!Of(self).faults.OnCall().ok()) return MSRT_DELEGATE;
  *bytes = Of(self).memory.free_bytes();
  return MSRT_OK;
}

msrt_status Allocate(void* self, const msrt_host_api* host, size_t bytes, void** out) {
  return Guarded(host, [&] {
    const Failure failure = Of(self).faults.OnAllocate();
    return failure.ok() ? Of(self).memory.Allocate(bytes, out) : failure;
  });
}

void Deallocate(void* self, void* pointer, size_t bytes) { Of(self).memory.Free(pointer, bytes); }

msrt_status StreamCreate(void* self, const msrt_host_api* host, void** stream) {
  return Guarded(host, [&] {
    Failure failure = Of(self).faults.OnCall();
    if (failure.ok()) *stream = new Stream(&Of(self).faults);
    return failure;
  });
}

void StreamDestroy(void*, void* stream) { delete static_cast<Stream*>(stream); }

msrt_status StreamSynchronize(void* self, const msrt_host_api* host, void* stream) {
  return Guarded(host, [&] {
    Failure failure = static_cast<Stream*>(stream)->Synchronize();
    return failure.ok() ? Of(self).faults.OnCall() : failure;
  });
}

// Checks and holds `on_device` at once; the copy itself is queued in the stream.
msrt_status Copy(Accelerator& a, const msrt_host_api* host, void* stream, const void* on_device,
                 size_t bytes, const char* what, std::function<void(std::byte*)> copy) {
  return Guarded(host, [&]() -> Failure {
    const bool late = a.options.fails_late;
    if (!late) {
      if (Failure failure = a.faults.OnCopy(); !failure.ok()) return failure;
    }
    auto memory = std::make_shared<DeviceMemory::Use>();
    if (Failure failure = a.memory.Find(on_device, bytes, what, memory.get()); !failure.ok())
      return failure;
    static_cast<Stream*>(stream)->Enqueue([&a, late, memory, copy = std::move(copy)] {
      const Failure failure = late ? a.faults.OnCopy() : Failure{};
      if (failure.ok()) copy(memory->data());
      return failure;
    });
    return {};
  });
}

msrt_status CopyToDevice(void* self, const msrt_host_api* host, void* stream, void* to,
                         const void* from, size_t bytes) {
  return Copy(Of(self), host, stream, to, bytes, "a copy to the device", [=](std::byte* memory) {
    if (bytes != 0) std::memcpy(memory, from, bytes);
  });
}

msrt_status CopyToHost(void* self, const msrt_host_api* host, void* stream, void* to,
                       const void* from, size_t bytes) {
  return Copy(Of(self), host, stream, from, bytes, "a copy to the host",
              [=](const std::byte* memory) {
                if (bytes != 0) std::memcpy(to, memory, bytes);
              });
}

msrt_status EventCreate(void* self, const msrt_host_api* host, void** event) {
  return Guarded(host, [&] {
    Failure failure = Of(self).faults.OnCall();
    if (failure.ok()) *event = new Event;
    return failure;
  });
}

void EventDestroy(void*, void* event) { delete static_cast<Event*>(event); }

msrt_status EventRecord(void* self, const msrt_host_api* host, void* event, void* stream) {
  const auto s = static_cast<Stream*>(stream);
  *static_cast<Event*>(event) = {s, s->enqueued()};
  return Guarded(host, [&] { return Of(self).faults.OnCall(); });
}

msrt_status EventWait(void* self, const msrt_host_api* host, void* event) {
  return Guarded(host, [&] {
    const Event& e = *static_cast<Event*>(event);
    Failure failure = e.stream == nullptr ? Failure{} : e.stream->WaitFor(e.count);
    return failure.ok() ? Of(self).faults.OnCall() : failure;
  });
}

}  // namespace

msrt_device_api DeviceApi(const Options& options) {
  msrt_device_api api = MSRT_INIT(msrt_device_api);
  api.launch_seconds = options.launch_us * 1e-6;
  api.copy_seconds = options.copy_us * 1e-6;
  api.copy_bytes_per_second = options.copy_gbs * 1e9;
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
  return api;
}

}  // namespace accelerator
