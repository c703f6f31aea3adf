// Streams, events and arenas that a frame holds on devices other than the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/bind/binding.h"

namespace msrt {

class DeviceWork {
 public:
  // Sets the program; releases everything that belongs to another one.
  void Reset(const Program* program);
  // Creates whatever a binding needs and is still missing.
  Status Prepare(const Binding& binding, uint32_t depth);
  // Grows the block to at least `bytes` in the memory of that device; its contents are lost if it
  // grows.
  Status Ensure(uint16_t device, DeviceBlock* block, size_t bytes, std::string_view what);
  // Waits until all streams are idle; returns the first error since the last call.
  Status Synchronize();

  std::byte* arena(uint16_t device, uint32_t depth) const { return arenas_[depth][device].data(); }
  void* stream(uint16_t device) const { return streams_[device]->handle(); }
  Status Wait(EventId event);
  Status Record(EventId event);
  Status CopyToDevice(uint16_t device, void* to, const void* from, size_t bytes);
  Status CopyToHost(uint16_t device, void* to, const void* from, size_t bytes);

  void Trim();
  size_t bytes() const;
  // Returns the device that failed last and whose work another could do; empty if there is none.
  const std::string& failed() const { return failed_; }
  void ForgetFailure() { failed_.clear(); }

 private:
  Status EnsureStream(uint16_t device);
  // Adds the device's name to an error, and remembers the device as failed if another could do its
  // work.
  Status WithDevice(uint16_t device, Status status);

  const Program* program_ = nullptr;
  std::vector<std::unique_ptr<Stream>> streams_;  // by device; null where nothing was enqueued yet
  std::vector<std::vector<std::unique_ptr<Event>>> events_;  // by device and number
  std::vector<std::vector<DeviceBlock>> arenas_;             // by depth and device
  std::string failed_;
};

}  // namespace msrt
