#include "core/delegate/device.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/clock.h"
#include "core/delegate/boundary.h"

namespace msrt {

template <typename Function, typename... Arguments>
Status Device::Call(Function function, Arguments... arguments) const {
  return CallDelegate(name_, [&] { return function(self_, arguments...); });
}

void DeviceBlock::Reset() {
  if (device_ != nullptr)
    device_->api_.deallocate(device_->self_, data_, std::max<size_t>(bytes_, 1));
  device_.reset();
  data_ = nullptr;
  bytes_ = 0;
}

Stream::~Stream() { device_->api_.stream_destroy(device_->self_, handle_); }

Status Stream::CopyToDevice(const Host& host, void* to, const void* from, size_t bytes) {
  return device_->Call(device_->api_.copy_to_device, host.api(), handle_, to, from, bytes);
}

Status Stream::CopyToHost(const Host& host, void* to, const void* from, size_t bytes) {
  return device_->Call(device_->api_.copy_to_host, host.api(), handle_, to, from, bytes);
}

Status Stream::Synchronize(const Host& host) {
  return device_->Call(device_->api_.stream_synchronize, host.api(), handle_);
}

Event::~Event() { device_->api_.event_destroy(device_->self_, handle_); }

Status Event::Record(const Host& host, const Stream& stream) {
  return device_->Call(device_->api_.event_record, host.api(), handle_, stream.handle());
}

Status Event::Wait(const Host& host) {
  return device_->Call(device_->api_.event_wait, host.api(), handle_);
}

Device::Device(const msrt_device_api& api, void* self, std::string name,
               std::shared_ptr<const void> owner)
    : api_(api), self_(self), name_(std::move(name)), owner_(std::move(owner)) {}

Result<size_t> Device::FreeBytes() const {
  size_t bytes = SIZE_MAX;
  MSRT_RETURN_IF_ERROR(Call(api_.memory, &bytes));
  return bytes;
}

Result<DeviceBlock> Device::Allocate(const Host& host, size_t bytes, std::string_view what) const {
  DeviceBlock block;
  Status status = Call(api_.allocate, host.api(), std::max<size_t>(bytes, 1), &block.data_);
  if (status.ok() && block.data_ == nullptr)
    status = DelegateError("delegate ", name_, ": allocate returned no memory and no error");
  if (!status.ok())
    return std::move(status).Within(StrCat(what, " (", bytes, " bytes on ", name_, ")"));
  block.device_ = shared_from_this();
  block.bytes_ = bytes;
  if (reinterpret_cast<uintptr_t>(block.data_) % kTensorAlignment != 0) {
    return DelegateError("delegate ", name_, ": allocate returned memory that is not aligned to ",
                         kTensorAlignment);
  }
  return block;
}

TransferCosts::Link Device::LinkCosts(const Host& host) const {
  if (api_.copy_bytes_per_second > 0) {
    return {api_.copy_seconds, api_.copy_bytes_per_second, api_.copy_seconds,
            api_.copy_bytes_per_second};
  }
  std::call_once(link_measured_, [&] {
    auto measured = MeasureLink(host);
    if (measured.ok()) link_ = *measured;
  });
  return link_;
}

Result<TransferCosts::Link> Device::MeasureLink(const Host& host) const {
  constexpr size_t kSmall = 64, kLarge = size_t{1} << 20;
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, MakeStream(host));
  MSRT_ASSIGN_OR_RETURN(const DeviceBlock block, Allocate(host, kLarge, "measuring copies"));
  std::vector<std::byte> memory(kLarge);
  // The median: the minimum is only reached when both sides are already awake, and one slow spell
  // can spoil a few copies.
  const auto time = [&](bool to_device, size_t bytes) -> Result<double> {
    std::array<double, 9> seconds;
    for (double& s : seconds) {
      const StopWatch watch;
      MSRT_RETURN_IF_ERROR(to_device
                               ? stream->CopyToDevice(host, block.data(), memory.data(), bytes)
                               : stream->CopyToHost(host, memory.data(), block.data(), bytes));
      MSRT_RETURN_IF_ERROR(stream->Synchronize(host));
      s = watch.Millis() * 1e-3;
    }
    std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
    return seconds[seconds.size() / 2];
  };
  TransferCosts::Link link;
  const auto measure = [&](bool to_device, double* seconds, double* bytes_per_second) -> Status {
    MSRT_ASSIGN_OR_RETURN(const double small, time(to_device, kSmall));
    MSRT_ASSIGN_OR_RETURN(const double large, time(to_device, kLarge));
    *seconds = small;
    *bytes_per_second = static_cast<double>(kLarge) / std::max(large - small, 1e-6);
    return OkStatus();
  };
  MSRT_RETURN_IF_ERROR(measure(true, &link.to_seconds, &link.to_bytes_per_second));
  MSRT_RETURN_IF_ERROR(measure(false, &link.from_seconds, &link.from_bytes_per_second));
  return link;
}

Result<void*> Device::Create(CreateFn create, const Host& host, std::string_view function) const {
  void* handle = nullptr;
  MSRT_RETURN_IF_ERROR(Call(create, host.api(), &handle));
  if (handle == nullptr)
    return DelegateError("delegate ", name_, ": ", function, " returned NULL and no error");
  return handle;
}

Result<std::unique_ptr<Stream>> Device::MakeStream(const Host& host) const {
  MSRT_ASSIGN_OR_RETURN(void* const handle, Create(api_.stream_create, host, "stream_create"));
  return std::unique_ptr<Stream>(new Stream(shared_from_this(), handle));
}

Result<std::unique_ptr<Event>> Device::MakeEvent(const Host& host) const {
  MSRT_ASSIGN_OR_RETURN(void* const handle, Create(api_.event_create, host, "event_create"));
  return std::unique_ptr<Event>(new Event(shared_from_this(), handle));
}

}  // namespace msrt
