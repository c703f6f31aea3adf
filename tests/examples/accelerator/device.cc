#include "tests/examples/accelerator/device.h"

#include <cstring>
#include <memory>
#include <new>

#include "core/run/convert.h"
#include "delegates/sdk/graph_image.h"
#include "tests/examples/accelerator/accelerator.h"
#include "tests/examples/accelerator/counters.h"
#include "tests/examples/accelerator/misuse.h"
#include "tests/examples/accelerator/stream.h"

namespace accelerator {
namespace {

constexpr int32_t kDlpackExtension = 12;  // kDLExtDev

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
  *bytes = MemoryOf(self).free_bytes();
  return MSRT_OK;
}

msrt_status Allocate(void* self, const msrt_host_api* host, size_t bytes, void** out) {
  return Guarded(host, [&] {
    const Failure failure = Of(self).faults.OnAllocate();
    return failure.ok() ? MemoryOf(self).Allocate(bytes, out) : failure;
  });
}

void Deallocate(void* self, void* pointer, size_t bytes) { MemoryOf(self).Free(pointer, bytes); }

msrt_status StreamCreate(void* self, const msrt_host_api* host, int32_t priority, void** stream) {
  return Guarded(host, [&] {
    if (priority > 0) ++Count().urgent_streams;
    Failure failure = Of(self).faults.OnCall();
    if (failure.ok()) *stream = new Stream(&Of(self).faults);
    return failure;
  });
}

void StreamDestroy(void*, void* stream) { delete static_cast<Stream*>(stream); }

msrt_status StreamSynchronize(void* self, const msrt_host_api* host, void* stream) {
  return Guarded(host, [&] {
    ++Count().host_waits;
    Failure failure = static_cast<Stream*>(stream)->Synchronize();
    return failure.ok() ? Of(self).faults.OnCall() : failure;
  });
}

// Memory of a device that an operation reads or writes.
struct Operand {
  void* self;
  const void* pointer;
  size_t bytes;
  bool writes;
};

// Checks and holds the memory at once; `work` gets the real addresses and is queued in the stream.
template <typename WorkFn>
msrt_status Transfer(void* self, const msrt_host_api* host, void* stream, const char* what,
                     std::vector<Operand> operands, WorkFn work) {
  return Guarded(host, [&] {
    return static_cast<Stream*>(stream)->Do([&a = Of(self), what, operands = std::move(operands),
                                             work](Stream* s) -> Failure {
      const bool late = a.options.fails_late;
      if (!late) {
        if (Failure failure = a.faults.OnCopy(); !failure.ok()) return failure;
      }
      auto uses = std::make_shared<std::vector<DeviceMemory::Use>>(operands.size());
      for (size_t i = 0; i < operands.size(); ++i) {
        const Operand& o = operands[i];
        if (Failure f = MemoryOf(o.self).Find(o.pointer, o.bytes, what, &(*uses)[i]); !f.ok())
          return f;
      }
      const Piece piece = s->NextPiece();
      for (size_t i = 0; i < operands.size(); ++i)
        MemoryOf(operands[i].self).Touch((*uses)[i], operands[i].bytes, piece, operands[i].writes);
      s->Enqueue([&a, late, uses, work] {
        const Failure failure = late ? a.faults.OnCopy() : Failure{};
        if (failure.ok()) work(*uses);
        return failure;
      });
      return {};
    });
  });
}

void RefuseCapture(void* stream) {
  if (static_cast<Stream*>(stream)->capturing())
    CountMisuse("a copy from or to the host is captured");
}

msrt_status CopyToDevice(void* self, const msrt_host_api* host, void* stream, void* to,
                         const void* from, size_t bytes) {
  RefuseCapture(stream);
  ++Count().copies_to_device;
  return Transfer(self, host, stream, "a copy to the device", {{self, to, bytes, true}},
                  [=](const std::vector<DeviceMemory::Use>& uses) {
                    if (bytes != 0) std::memcpy(uses[0].data(), from, bytes);
                  });
}

msrt_status CopyToHost(void* self, const msrt_host_api* host, void* stream, void* to,
                       const void* from, size_t bytes) {
  RefuseCapture(stream);
  ++Count().copies_to_host;
  return Transfer(self, host, stream, "a copy to the host", {{self, from, bytes, false}},
                  [=](const std::vector<DeviceMemory::Use>& uses) {
                    if (bytes != 0) std::memcpy(to, uses[0].data(), bytes);
                  });
}

msrt_status CopyPeer(void* self, const msrt_host_api* host, void* stream, void* to, void* from_self,
                     const void* from, size_t bytes) {
  ++Count().peer_copies;
  return Transfer(self, host, stream, "a copy between devices",
                  {{self, to, bytes, true}, {from_self, from, bytes, false}},
                  [=](const std::vector<DeviceMemory::Use>& uses) {
                    if (bytes != 0) std::memmove(uses[0].data(), uses[1].data(), bytes);
                  });
}

msrt_status PeerCost(void* self, void* from_self, double* seconds, double* bytes_per_second) {
  // Devices of two loaded accelerators share the functions, but not the wires.
  const Options& options = Of(self).options;
  const bool reachable = &Of(self) == &Of(from_self) && options.peers;
  *seconds = options.copy_us * 1e-6 / 2;
  *bytes_per_second = reachable ? (options.copy_gbs > 0 ? options.copy_gbs * 2e9 : 1e10) : 0;
  return MSRT_OK;
}

msrt_status Convert(void* self, const msrt_host_api* host, void* stream, const msrt_shape* shape,
                    msrt_layout from_layout, const void* from, msrt_layout to_layout, void* to) {
  ++Count().conversions;
  const msrt::Type type = msrt::sdk::TypeOf(*shape);
  const auto in = static_cast<msrt::Layout>(from_layout),
             out = static_cast<msrt::Layout>(to_layout);
  const size_t in_bytes = msrt::BytesIn(in, type.dtype, type.dims),
               out_bytes = msrt::BytesIn(out, type.dtype, type.dims);
  return Transfer(self, host, stream, "a conversion",
                  {{self, to, out_bytes, true}, {self, from, in_bytes, false}},
                  [=](const std::vector<DeviceMemory::Use>& uses) {
                    const auto serial = msrt::MakeSerial();
                    (void)msrt::ConvertLayout({type.dtype, type.dims, in, uses[1].data()},
                                              {type.dtype, type.dims, out, uses[0].data()},
                                              *serial);
                  });
}

msrt_status HostAllocate(void*, const msrt_host_api*, size_t bytes, void** out) {
  ++Count().host_allocations;
  *out = ::operator new(bytes, std::align_val_t(64), std::nothrow);
  return *out == nullptr ? MSRT_OUT_OF_MEMORY : MSRT_OK;
}

void HostDeallocate(void*, void* pointer, size_t) {
  ::operator delete(pointer, std::align_val_t(64));
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
  return Guarded(host, [&] {
    static_cast<Stream*>(stream)->Record(static_cast<Event*>(event));
    return Of(self).faults.OnCall();
  });
}

msrt_status EventWait(void* self, const msrt_host_api* host, void* event) {
  return Guarded(host, [&]() -> Failure {
    ++Count().host_waits;
    const Event& e = *static_cast<Event*>(event);
    if (e.progress == nullptr) return {};
    Failure failure = e.progress->WaitFor(e.count);
    TheOrder().HostWaits(e.clock);
    return failure.ok() ? Of(self).faults.OnCall() : failure;
  });
}

msrt_status StreamWaitEvent(void* self, const msrt_host_api* host, void* stream, void* event) {
  return Guarded(host, [&] {
    ++Count().stream_waits;
    static_cast<Stream*>(stream)->Wait(*static_cast<Event*>(event));
    return Of(self).faults.OnCall();
  });
}

msrt_status CaptureBegin(void*, const msrt_host_api* host, void* stream) {
  return Guarded(host, [&] { return static_cast<Stream*>(stream)->BeginCapture(); });
}

msrt_status CaptureEnd(void*, const msrt_host_api* host, void* stream, void** recording) {
  return Guarded(host, [&] {
    ++Count().captures;
    std::unique_ptr<Recording> made;
    Failure failure = static_cast<Stream*>(stream)->EndCapture(&made);
    *recording = made.release();
    return failure;
  });
}

msrt_status RecordingRun(void* self, const msrt_host_api* host, void* recording, void* stream) {
  return Guarded(host, [&] {
    ++Count().replays;
    for (const Launch& launch : static_cast<Recording*>(recording)->launches) {
      if (Failure failure = launch(static_cast<Stream*>(stream)); !failure.ok()) return failure;
    }
    return Of(self).faults.OnCall();
  });
}

}  // namespace

msrt_device_api DeviceApi(const Options& options, const char* name, size_t number) {
  msrt_device_api api = MSRT_INIT(msrt_device_api);
  api.plugin_abi = MSRT_PLUGIN_ABI;
  api.name = name;
  api.destroy = DestroyHandle;
  api.dlpack_type = kDlpackExtension;
  api.dlpack_id = static_cast<int32_t>(number);
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
  if (options.stream_waits) api.stream_wait_event = StreamWaitEvent;
  api.copy_peer = CopyPeer;
  api.peer_cost = PeerCost;
  if (options.pinned) {
    api.host_allocate = HostAllocate;
    api.host_deallocate = HostDeallocate;
  }
  if (options.converts) api.convert = Convert;
  if (options.captures) {
    api.capture_begin = CaptureBegin;
    api.capture_end = CaptureEnd;
    api.recording_run = RecordingRun;
    api.recording_destroy = [](void*, void* recording) {
      delete static_cast<Recording*>(recording);
    };
  }
  return api;
}

}  // namespace accelerator
