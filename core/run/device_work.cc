#include "core/run/device_work.h"

namespace msrt {

void DeviceWork::Reset(const Program* program) {
  // Streams first: work on them uses the events and arenas.
  streams_.clear();
  events_.clear();
  arenas_.clear();
  failed_.clear();
  program_ = program;
  streams_.resize(program->devices.size());
  events_.resize(program->devices.size());
}

Status DeviceWork::WithDevice(uint16_t device, Status status) {
  if (status.ok()) return status;
  const std::string& name = program_->devices[device]->name();
  if (MayRunElsewhere(status.code(), /*on_device=*/true)) failed_ = name;
  return std::move(status).Within(StrCat("on ", name));
}

Status DeviceWork::Prepare(const Binding& binding, uint32_t depth) {
  if (binding.device_arena_bytes.empty()) return OkStatus();
  const Host& host = *program_->host;
  if (arenas_.size() <= depth) arenas_.resize(depth + 1);
  arenas_[depth].resize(program_->devices.size());
  for (uint16_t d = 1; d < program_->devices.size(); ++d) {
    if (program_->devices[d] == nullptr) continue;
    const Device& device = *program_->devices[d];
    MSRT_RETURN_IF_ERROR(EnsureStream(d));
    while (events_[d].size() < binding.event_counts[d]) {
      auto event = device.MakeEvent(host);
      if (!event.ok()) return WithDevice(d, std::move(event).status());
      events_[d].push_back(*std::move(event));
    }
    MSRT_RETURN_IF_ERROR(Ensure(d, &arenas_[depth][d], binding.device_arena_bytes[d], "the arena"));
  }
  return OkStatus();
}

Status DeviceWork::EnsureStream(uint16_t d) {
  if (streams_[d] != nullptr) return OkStatus();
  auto stream = program_->devices[d]->MakeStream(*program_->host);
  if (!stream.ok()) return WithDevice(d, std::move(stream).status());
  streams_[d] = *std::move(stream);
  return OkStatus();
}

Status DeviceWork::Ensure(uint16_t d, DeviceBlock* block, size_t bytes, std::string_view what) {
  const Device& device = *program_->devices[d];
  if (block->data() != nullptr && block->device() == &device && block->bytes() >= bytes)
    return OkStatus();
  block->Reset();
  auto larger = device.Allocate(*program_->host, bytes, what);
  if (!larger.ok()) return WithDevice(d, std::move(larger).status());
  *block = *std::move(larger);
  return OkStatus();
}

Status DeviceWork::Synchronize() {
  Status first;
  for (uint16_t d = 1; d < streams_.size(); ++d) {
    if (streams_[d] == nullptr) continue;
    Status status = WithDevice(d, streams_[d]->Synchronize(*program_->host));
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status DeviceWork::Wait(EventId e) {
  return WithDevice(e.device, events_[e.device][e.number]->Wait(*program_->host));
}

Status DeviceWork::Record(EventId e) {
  return WithDevice(e.device,
                    events_[e.device][e.number]->Record(*program_->host, *streams_[e.device]));
}

Status DeviceWork::CopyToDevice(uint16_t device, void* to, const void* from, size_t bytes) {
  MSRT_RETURN_IF_ERROR(EnsureStream(device));
  return WithDevice(device, streams_[device]->CopyToDevice(*program_->host, to, from, bytes));
}

Status DeviceWork::CopyToHost(uint16_t device, void* to, const void* from, size_t bytes) {
  return WithDevice(device, streams_[device]->CopyToHost(*program_->host, to, from, bytes));
}

void DeviceWork::Trim() { arenas_.clear(); }

size_t DeviceWork::bytes() const {
  size_t bytes = 0;
  for (const auto& depth : arenas_) {
    for (const DeviceBlock& block : depth) bytes += block.bytes();
  }
  return bytes;
}

}  // namespace msrt
