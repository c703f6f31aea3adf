// A delegate's device: owning types for its memory, streams and events.
#pragma once

#include <memory>
#include <mutex>

#include "core/delegate/host.h"
#include "core/delegate/transfer.h"

namespace msrt {

class Device;

// A piece of a device's memory. The pointer means nothing to the host. Empty blocks hold a pointer
// too.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(DeviceBlock&& other) noexcept { *this = std::move(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBlock() { Reset(); }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }
  const Device* device() const { return device_.get(); }
  void Reset();

 private:
  friend class Device;
  std::shared_ptr<const Device> device_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Work that runs in order, beside the host.
class Stream {
 public:
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* handle() const { return handle_; }
  Status CopyToDevice(const Host& host, void* to, const void* from, size_t bytes);
  Status CopyToHost(const Host& host, void* to, const void* from, size_t bytes);
  // Waits until all work is done. Returns the first error since the last call.
  Status Synchronize(const Host& host);

 private:
  friend class Device;
  Stream(std::shared_ptr<const Device> device, void* handle)
      : device_(std::move(device)), handle_(handle) {}
  std::shared_ptr<const Device> device_;
  void* handle_;
};

// A point in a stream that the host can wait for.
class Event {
 public:
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Status Record(const Host& host, const Stream& stream);
  Status Wait(const Host& host);

 private:
  friend class Device;
  Event(std::shared_ptr<const Device> device, void* handle)
      : device_(std::move(device)), handle_(handle) {}
  std::shared_ptr<const Device> device_;
  void* handle_;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  // `owner` keeps the delegate behind the functions alive.
  Device(const msrt_device_api& api, void* self, std::string name,
         std::shared_ptr<const void> owner);

  const std::string& name() const { return name_; }
  double launch_seconds() const { return api_.launch_seconds; }
  // SIZE_MAX: no limit.
  Result<size_t> FreeBytes() const;
  // Returns the cost of copies from and to the host. If the device does not state it, the first
  // call measures it (a few milliseconds).
  TransferCosts::Link LinkCosts(const Host& host) const;
  // `what` is for the error message.
  Result<DeviceBlock> Allocate(const Host& host, size_t bytes, std::string_view what) const;
  Result<std::unique_ptr<Stream>> MakeStream(const Host& host) const;
  Result<std::unique_ptr<Event>> MakeEvent(const Host& host) const;

 private:
  friend class DeviceBlock;
  friend class Stream;
  friend class Event;
  template <typename Function, typename... Arguments>
  Status Call(Function function, Arguments... arguments) const;
  using CreateFn = msrt_status (*)(void* self, const msrt_host_api* host, void** out);
  Result<void*> Create(CreateFn create, const Host& host, std::string_view function) const;

  const msrt_device_api api_;
  void* const self_;
  const std::string name_;
  const std::shared_ptr<const void> owner_;
  Result<TransferCosts::Link> MeasureLink(const Host& host) const;
  mutable std::once_flag link_measured_;
  mutable TransferCosts::Link link_{1e-5, 5e9, 1e-5,
                                    5e9};  // typical values, used if measuring fails
};

}  // namespace msrt
