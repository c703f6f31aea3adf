// A registered device: owning types for its memory, streams, events and recordings.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

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

// A piece of the host's memory for copies to and from a device: pinned, if the device has such
// memory.
class StagingBlock {
 public:
  StagingBlock() = default;
  StagingBlock(StagingBlock&& other) noexcept { *this = std::move(other); }
  StagingBlock& operator=(StagingBlock&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(pinned_, other.pinned_);
    std::swap(pinned_bytes_, other.pinned_bytes_);
    std::swap(plain_, other.plain_);
    return *this;
  }
  ~StagingBlock();
  std::byte* data() const { return pinned_ != nullptr ? pinned_ : plain_.data(); }
  size_t bytes() const { return pinned_ != nullptr ? pinned_bytes_ : plain_.bytes(); }

 private:
  friend class Device;
  std::shared_ptr<const Device> device_;
  std::byte* pinned_ = nullptr;
  size_t pinned_bytes_ = 0;
  Block plain_;
};

class Event;

// Work that a device recorded, to be run again with the same addresses.
class Recording {
 public:
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  friend class Stream;
  Recording(std::shared_ptr<const Device> device, void* handle)
      : device_(std::move(device)), handle_(handle) {}
  std::shared_ptr<const Device> device_;
  void* handle_;
};

// Work that runs in order, beside the host.
class Stream {
 public:
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  void* handle() const { return handle_; }
  const Device& device() const { return *device_; }
  Status CopyToDevice(const Host& host, void* to, const void* from, size_t bytes);
  Status CopyToHost(const Host& host, void* to, const void* from, size_t bytes);
  // Requires Device::Reaches(source).
  Status CopyPeer(const Host& host, void* to, const Device& source, const void* from, size_t bytes);
  // Requires Device::converts().
  Status Convert(const Host& host, const TensorView& from, const TensorView& to);
  // Later work waits for the event. Requires Device::MayWaitFor(the event's device).
  Status Wait(const Host& host, const Event& event);
  // Waits until all work is done. Returns the first error since the last call.
  Status Synchronize(const Host& host);

  // Require Device::captures().
  Status BeginCapture(const Host& host);
  Result<std::unique_ptr<Recording>> EndCapture(const Host& host);
  Status Run(const Host& host, const Recording& recording);

 private:
  friend class Device;
  Stream(std::shared_ptr<const Device> device, void* handle)
      : device_(std::move(device)), handle_(handle) {}
  std::shared_ptr<const Device> device_;
  void* handle_;
};

// A point in a stream that the host and other streams can wait for.
class Event {
 public:
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Status Record(const Host& host, const Stream& stream);
  Status Wait(const Host& host);

 private:
  friend class Device;
  friend class Stream;
  Event(std::shared_ptr<const Device> device, void* handle)
      : device_(std::move(device)), handle_(handle) {}
  std::shared_ptr<const Device> device_;
  void* handle_;
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  // Checks the table. The caller owns `self` until TakeOver. `library` (may be null) stays loaded
  // as long as the device lives.
  static Result<std::shared_ptr<const Device>> Make(const msrt_device_api& api, void* self,
                                                    std::shared_ptr<const void> library);
  ~Device();
  // From now on this object owns `self`.
  void TakeOver() const { owns_self_ = true; }

  const std::string& name() const { return name_; }
  double launch_seconds() const { return api_.launch_seconds; }
  int32_t dlpack_type() const { return api_.dlpack_type; }
  int32_t dlpack_id() const { return api_.dlpack_id; }
  // SIZE_MAX: no limit.
  Result<size_t> FreeBytes() const;
  // Returns the cost of copies from and to the host. If the device does not state it, the first
  // call measures it (a few milliseconds).
  TransferCosts::Link LinkCosts(const Host& host) const;
  // Returns the cost of a copy from `source`, a peer or this device; a rate of 0: it cannot be
  // reached.
  TransferCosts::Path PeerCosts(const Device& source) const;

  // Whether a stream of this device can copy from that one's memory.
  bool Reaches(const Device& source) const { return PeerCosts(source).bytes_per_second > 0; }
  // Whether a stream of this device can wait for events of that one.
  bool MayWaitFor(const Device& other) const {
    return api_.stream_wait_event != nullptr && IsPeer(other);
  }
  bool converts() const { return api_.convert != nullptr; }
  bool captures() const { return api_.capture_begin != nullptr; }

  // `what` is for the error message.
  Result<DeviceBlock> Allocate(const Host& host, size_t bytes, std::string_view what) const;
  Result<StagingBlock> AllocateStaging(const Host& host, Allocator* allocator, size_t bytes) const;
  Result<std::unique_ptr<Stream>> MakeStream(const Host& host, int32_t priority = 0) const;
  Result<std::unique_ptr<Event>> MakeEvent(const Host& host) const;

 private:
  friend class DeviceBlock;
  friend class StagingBlock;
  friend class Recording;
  friend class Stream;
  friend class Event;
  Device(const msrt_device_api& api, void* self, std::shared_ptr<const void> library);
  // The device itself, or one with the same functions: handles may be exchanged.
  bool IsPeer(const Device& other) const {
    return &other == this || (api_.copy_peer != nullptr && api_.copy_peer == other.api_.copy_peer);
  }
  template <typename Function, typename... Arguments>
  Status Call(Function function, Arguments... arguments) const;
  Status CheckHandle(void* handle, std::string_view function) const;
  Result<TransferCosts::Link> MeasureLink(const Host& host) const;

  msrt_device_api api_;
  void* const self_;
  const std::string name_;
  const std::shared_ptr<const void> library_;
  mutable bool owns_self_ = false;
  mutable std::once_flag link_measured_;
  mutable TransferCosts::Link link_{1e-5, 5e9, 1e-5,
                                    5e9};  // typical values, used if measuring fails
};

}  // namespace msrt
