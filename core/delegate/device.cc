#include "core/delegate/device.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/clock.h"
#include "core/base/copy_known_fields.h"
#include "core/delegate/boundary.h"
#include "core/delegate/name.h"
#include "core/delegate/offered_graph.h"

namespace msrt {
namespace {

Status CheckTable(const msrt_device_api& d) {
  if (d.plugin_abi != MSRT_PLUGIN_ABI) {
    return Unsupported("device '", d.name, "' speaks plugin ABI ", d.plugin_abi, ", this library ",
                       MSRT_PLUGIN_ABI, "; build it with this library's msrt_plugin.h");
  }
  const bool complete = d.memory != nullptr && d.allocate != nullptr && d.deallocate != nullptr &&
                        d.stream_create != nullptr && d.stream_destroy != nullptr &&
                        d.stream_synchronize != nullptr && d.copy_to_device != nullptr &&
                        d.copy_to_host != nullptr && d.event_create != nullptr &&
                        d.event_destroy != nullptr && d.event_record != nullptr &&
                        d.event_wait != nullptr;
  if (!complete)
    return InvalidArgument("device '", d.name, "' lacks a required function of msrt_device_api");
  const int captures = (d.capture_begin != nullptr) + (d.capture_end != nullptr) +
                       (d.recording_run != nullptr) + (d.recording_destroy != nullptr);
  if ((d.host_allocate == nullptr) != (d.host_deallocate == nullptr) ||
      (captures != 0 && captures != 4) || (d.copy_peer == nullptr) != (d.peer_cost == nullptr) ||
      (d.convert != nullptr && d.peer_cost == nullptr)) {
    return InvalidArgument("device '", d.name,
                           "' has some functions of a group that belongs together (copy_peer and "
                           "peer_cost, which convert needs too; host_...; capture_... and "
                           "recording_...)");
  }
  if (!(d.launch_seconds >= 0 && d.launch_seconds < 1)) {
    return InvalidArgument("device '", d.name, "': launch_seconds is ", d.launch_seconds,
                           ", must be from 0 to 1");
  }
  if (!(d.copy_seconds >= 0 && d.copy_seconds < 1 && d.copy_bytes_per_second >= 0)) {
    return InvalidArgument("device '", d.name, "': copy_seconds is ", d.copy_seconds,
                           " and copy_bytes_per_second ", d.copy_bytes_per_second,
                           ", must be from 0 to 1 and not negative");
  }
  return OkStatus();
}

}  // namespace

template <typename Function, typename... Arguments>
Status Device::Call(Function function, Arguments... arguments) const {
  return CallDelegate("device", name_, [&] { return function(self_, arguments...); });
}

void DeviceBlock::Reset() {
  if (device_ != nullptr)
    device_->api_.deallocate(device_->self_, data_, std::max<size_t>(bytes_, 1));
  device_.reset();
  data_ = nullptr;
  bytes_ = 0;
}

StagingBlock::~StagingBlock() {
  if (pinned_ != nullptr) device_->api_.host_deallocate(device_->self_, pinned_, pinned_bytes_);
}

Recording::~Recording() { device_->api_.recording_destroy(device_->self_, handle_); }

Stream::~Stream() { device_->api_.stream_destroy(device_->self_, handle_); }

Status Stream::CopyToDevice(const Host& host, void* to, const void* from, size_t bytes) {
  return device_->Call(device_->api_.copy_to_device, host.api(), handle_, to, from, bytes);
}

Status Stream::CopyToHost(const Host& host, void* to, const void* from, size_t bytes) {
  return device_->Call(device_->api_.copy_to_host, host.api(), handle_, to, from, bytes);
}

Status Stream::CopyPeer(const Host& host, void* to, const Device& source, const void* from,
                        size_t bytes) {
  return device_->Call(device_->api_.copy_peer, host.api(), handle_, to, source.self_, from, bytes);
}

Status Stream::Convert(const Host& host, const TensorView& from, const TensorView& to) {
  const msrt_shape shape = ShapeOf(Type::Tensor(from.dtype, from.dims));
  return device_->Call(device_->api_.convert, host.api(), handle_, &shape,
                       static_cast<msrt_layout>(from.layout), from.data,
                       static_cast<msrt_layout>(to.layout), to.data);
}

Status Stream::Wait(const Host& host, const Event& event) {
  return device_->Call(device_->api_.stream_wait_event, host.api(), handle_, event.handle_);
}

Status Stream::Synchronize(const Host& host) {
  return device_->Call(device_->api_.stream_synchronize, host.api(), handle_);
}

Status Stream::BeginCapture(const Host& host) {
  return device_->Call(device_->api_.capture_begin, host.api(), handle_);
}

Result<std::unique_ptr<Recording>> Stream::EndCapture(const Host& host) {
  void* recording = nullptr;
  MSRT_RETURN_IF_ERROR(device_->Call(device_->api_.capture_end, host.api(), handle_, &recording));
  MSRT_RETURN_IF_ERROR(device_->CheckHandle(recording, "capture_end"));
  return std::unique_ptr<Recording>(new Recording(device_, recording));
}

Status Stream::Run(const Host& host, const Recording& recording) {
  return device_->Call(device_->api_.recording_run, host.api(), recording.handle_, handle_);
}

Event::~Event() { device_->api_.event_destroy(device_->self_, handle_); }

Status Event::Record(const Host& host, const Stream& stream) {
  return device_->Call(device_->api_.event_record, host.api(), handle_, stream.handle());
}

Status Event::Wait(const Host& host) {
  return device_->Call(device_->api_.event_wait, host.api(), handle_);
}

Device::Device(const msrt_device_api& api, void* self, std::shared_ptr<const void> library)
    : api_(api), self_(self), name_(api.name), library_(std::move(library)) {
  api_.name = nullptr;  // the caller may free it
}

Device::~Device() {
  if (owns_self_ && api_.destroy != nullptr) api_.destroy(self_);
}

Result<std::shared_ptr<const Device>> Device::Make(const msrt_device_api& given, void* self,
                                                   std::shared_ptr<const void> library) {
  if (given.struct_size < offsetof(msrt_device_api, memory)) {
    return InvalidArgument("a device's table has struct_size ", given.struct_size,
                           "; set it to sizeof(msrt_device_api)");
  }
  const msrt_device_api api = CopyKnownFields(given);
  MSRT_RETURN_IF_ERROR(CheckName("device", api.name));
  MSRT_RETURN_IF_ERROR(CheckTable(api));
  return std::shared_ptr<const Device>(new Device(api, self, std::move(library)));
}

Result<size_t> Device::FreeBytes() const {
  size_t bytes = SIZE_MAX;
  MSRT_RETURN_IF_ERROR(Call(api_.memory, &bytes));
  return bytes;
}

Result<DeviceBlock> Device::Allocate(const Host& host, size_t bytes, std::string_view what) const {
  DeviceBlock block;
  Status status = Call(api_.allocate, host.api(), std::max<size_t>(bytes, 1), &block.data_);
  if (status.ok()) status = CheckHandle(block.data_, "allocate");
  if (!status.ok())
    return std::move(status).Within(StrCat(what, " (", bytes, " bytes on ", name_, ")"));
  block.device_ = shared_from_this();
  block.bytes_ = bytes;
  if (reinterpret_cast<uintptr_t>(block.data_) % kTensorAlignment != 0) {
    return DelegateError("device ", name_, ": allocate returned memory that is not aligned to ",
                         kTensorAlignment);
  }
  return block;
}

Result<StagingBlock> Device::AllocateStaging(const Host& host, Allocator* allocator,
                                             size_t bytes) const {
  StagingBlock block;
  block.device_ = shared_from_this();
  if (api_.host_allocate == nullptr) {
    MSRT_ASSIGN_OR_RETURN(block.plain_, Block::Make(allocator, bytes, "memory for copies"));
    return block;
  }
  void* pinned = nullptr;
  MSRT_RETURN_IF_ERROR(Call(api_.host_allocate, host.api(), bytes, &pinned));
  MSRT_RETURN_IF_ERROR(CheckHandle(pinned, "host_allocate"));
  block.pinned_ = static_cast<std::byte*>(pinned);
  block.pinned_bytes_ = bytes;
  return block;
}

TransferCosts::Path Device::PeerCosts(const Device& source) const {
  TransferCosts::Path path;
  if (api_.copy_peer == nullptr || !IsPeer(source)) return path;
  const Status status = Call(api_.peer_cost, source.self_, &path.seconds, &path.bytes_per_second);
  const bool valid =
      status.ok() && path.seconds >= 0 && path.seconds < 1 && path.bytes_per_second > 0;
  return valid ? path : TransferCosts::Path{};
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

Status Device::CheckHandle(void* handle, std::string_view function) const {
  if (handle != nullptr) return OkStatus();
  return DelegateError("device ", name_, ": ", function, " returned NULL and no error");
}

Result<std::unique_ptr<Stream>> Device::MakeStream(const Host& host, int32_t priority) const {
  void* handle = nullptr;
  MSRT_RETURN_IF_ERROR(Call(api_.stream_create, host.api(), priority, &handle));
  MSRT_RETURN_IF_ERROR(CheckHandle(handle, "stream_create"));
  return std::unique_ptr<Stream>(new Stream(shared_from_this(), handle));
}

Result<std::unique_ptr<Event>> Device::MakeEvent(const Host& host) const {
  void* handle = nullptr;
  MSRT_RETURN_IF_ERROR(Call(api_.event_create, host.api(), &handle));
  MSRT_RETURN_IF_ERROR(CheckHandle(handle, "event_create"));
  return std::unique_ptr<Event>(new Event(shared_from_this(), handle));
}

}  // namespace msrt
