// What a session has on devices beside the host: a stream, events and arenas for each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/bind/binding.h"

namespace msrt {

class DeviceWork {
 public:
  // For a program; everything from another one is released.
  void Reset(const Program* program);
  // Makes what a binding needs that is not there yet.
  Status Prepare(const Binding& binding, uint32_t depth);
  // Makes the block at least `bytes` large, in the memory of that device; its contents are lost if
  // it grows.
  Status Ensure(uint16_t device, DeviceBlock* block, size_t bytes, std::string_view what);
  // Until all streams are idle; the first error since the last call.
  Status Synchronize();

  std::byte* arena(uint16_t device, uint32_t depth) const { return arenas_[depth][device].data(); }
  void* stream(uint16_t device) const { return streams_[device]->handle(); }
  Status Wait(EventId event);
  Status Record(EventId event);
  Status CopyToDevice(uint16_t device, void* to, const void* from, size_t bytes);
  Status CopyToHost(uint16_t device, void* to, const void* from, size_t bytes);

  void Trim();
  size_t bytes() const;
  // The device that failed last, though another could do its work; empty if none did.
  const std::string& failed() const { return failed_; }
  void ForgetFailure() { failed_.clear(); }

 private:
  Status EnsureStream(uint16_t device);
  // Passes a status on, and remembers whose it is if another device could do better.
  Status From(uint16_t device, Status status);

  const Program* program_ = nullptr;
  std::vector<std::unique_ptr<Stream>> streams_;  // by device; null where nothing was enqueued yet
  std::vector<std::vector<std::unique_ptr<Event>>> events_;  // by device and number
  std::vector<std::vector<DeviceBlock>> arenas_;             // by depth and device
  std::string failed_;
};

}  // namespace msrt
