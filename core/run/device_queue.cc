#include "core/run/device_queue.h"

#include <algorithm>
#include <cstring>

namespace msrt {
namespace {

constexpr size_t kStagingBytes = size_t{256} << 10;
constexpr uint32_t kJoinEvent = 0;  // events of steps follow
// Cancellation takes effect when enqueued work is done, so the host does not enqueue without end;
// a deadline is to be noticed soon.
constexpr size_t kMaxSegmentsAhead = 2048, kMaxSegmentsAheadOfDeadline = 32;
// Forms of values that each iteration of a loop overwrites are held until the device has read them.
constexpr size_t kMaxFormBytes = size_t{64} << 20;

}  // namespace

DeviceQueue::~DeviceQueue() {
  if (stream_ != nullptr && busy_) (void)stream_->Synchronize(host());
  stream_.reset();  // before the events and memory that its work used, and the program's library
}

Status DeviceQueue::WithDevice(Status status) {
  if (status.ok()) return status;
  RunFailure& failure = context_.failure;
  if (MayRunElsewhere(status.code(), /*on_device=*/true) && failure.delegate.empty())
    failure = {device_->name(), graph_, placed_};
  return std::move(status).Within(StrCat("on ", device_->name()));
}

Status DeviceQueue::Use(uint32_t graph, const std::shared_ptr<const EntryProgram>& placed,
                        size_t event_count) {
  if (placed_ != placed) {
    placed_ = placed;
    graph_ = graph;
  }
  if (stream_ == nullptr) {
    auto stream = device_->MakeStream(host(), context_.stream_priority);
    if (!stream.ok()) return WithDevice(std::move(stream).status());
    stream_ = *std::move(stream);
  }
  return MakeEvents(event_count + 1);
}

Status DeviceQueue::MakeEvents(size_t count) {
  while (events_.size() < count) {
    auto event = device_->MakeEvent(host());
    if (!event.ok()) return WithDevice(std::move(event).status());
    events_.push_back(*std::move(event));
  }
  return OkStatus();
}

Result<const void*> DeviceQueue::Stage(const void* from, size_t bytes) {
  if (bytes == 0) return from;
  const size_t room = (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  if (staging_.data() == nullptr) {
    auto block =
        device_->AllocateStaging(host(), context_.model.environment->allocator, kStagingBytes);
    if (!block.ok()) return WithDevice(std::move(block).status());
    staging_ = *std::move(block);
  }
  if (staged_bytes_ + room > staging_.bytes()) MSRT_RETURN_IF_ERROR(Synchronize());
  std::byte* const copy = staging_.data() + staged_bytes_;
  staged_bytes_ += room;
  std::memcpy(copy, from, bytes);
  return copy;
}

Status DeviceQueue::CopyToDevice(void* to, const void* from, size_t bytes, bool staged) {
  if (staged) {
    MSRT_ASSIGN_OR_RETURN(from, Stage(from, bytes));
  }
  busy_ = true;
  return WithDevice(stream_->CopyToDevice(host(), to, from, bytes));
}

Status DeviceQueue::CopyToHost(void* to, const void* from, size_t bytes) {
  busy_ = true;
  return WithDevice(stream_->CopyToHost(host(), to, from, bytes));
}

Status DeviceQueue::CopyPeer(void* to, const Device& source, const void* from, size_t bytes) {
  busy_ = true;
  return WithDevice(stream_->CopyPeer(host(), to, source, from, bytes));
}

Status DeviceQueue::Convert(const TensorView& from, const TensorView& to) {
  busy_ = true;
  return WithDevice(stream_->Convert(host(), from, to));
}

Status DeviceQueue::RunRecording(const std::shared_ptr<const Recording>& recording) {
  busy_ = true;
  Hold(recording);
  return WithDevice(stream_->Run(host(), *recording));
}

Status DeviceQueue::Record(uint32_t event) {
  busy_ = true;
  return WithDevice(events_[1 + event]->Record(host(), *stream_));
}

Status DeviceQueue::Wait(uint32_t event) {
  segments_ = 0;
  return WithDevice(events_[1 + event]->Wait(host()));
}

Status DeviceQueue::WaitFor(DeviceQueue* other, uint32_t event) {
  if (!device_->MayWaitFor(*other->device_)) return other->Wait(event);
  busy_ = true;
  return WithDevice(stream_->Wait(host(), *other->events_[1 + event]));
}

Status DeviceQueue::Join(DeviceQueue* other) {
  if (!other->busy_) return OkStatus();
  if (!device_->MayWaitFor(*other->device_)) return other->Synchronize();
  busy_ = true;
  Event& event = *other->events_[kJoinEvent];
  MSRT_RETURN_IF_ERROR(other->WithDevice(event.Record(other->host(), *other->stream_)));
  return WithDevice(stream_->Wait(host(), event));
}

Status DeviceQueue::Synchronize() {
  if (!busy_) return OkStatus();
  Status status = WithDevice(stream_->Synchronize(host()));
  busy_ = false;
  staged_bytes_ = 0;
  segments_ = 0;
  form_bytes_ = 0;
  held_.clear();
  retired_.clear();
  return status;
}

Status DeviceQueue::EndSegment(const std::shared_ptr<const Binding>& binding) {
  if (!busy_) return OkStatus();
  Hold(binding);
  const size_t limit =
      context_.options.deadline_nanos == 0 ? kMaxSegmentsAhead : kMaxSegmentsAheadOfDeadline;
  const bool ahead = ++segments_ >= limit || form_bytes_ > kMaxFormBytes;
  return ahead ? Synchronize() : OkStatus();
}

Status DeviceQueue::Ensure(DeviceBlock* block, size_t bytes, std::string_view what) {
  if (Fits(*block, bytes)) return OkStatus();
  if (block->data() != nullptr)
    retired_.push_back(std::make_shared<const DeviceBlock>(std::move(*block)));
  MSRT_ASSIGN_OR_RETURN(*block, Allocate(bytes, what));
  return OkStatus();
}

Status DeviceQueue::Ensure(std::shared_ptr<DeviceBlock>* block, size_t bytes,
                           std::string_view what) {
  if (*block != nullptr && Fits(**block, bytes)) return OkStatus();
  if (*block != nullptr) retired_.push_back(std::move(*block));
  MSRT_ASSIGN_OR_RETURN(DeviceBlock larger, Allocate(bytes, what));
  *block = std::make_shared<DeviceBlock>(std::move(larger));
  return OkStatus();
}

// If the device is full, blocks that only enqueued work still uses are freed first.
Result<DeviceBlock> DeviceQueue::Allocate(size_t bytes, std::string_view what) {
  auto block = device_->Allocate(host(), bytes, what);
  if (!block.ok() && !retired_.empty()) {
    busy_ = true;
    MSRT_RETURN_IF_ERROR(Synchronize());
    block = device_->Allocate(host(), bytes, what);
  }
  if (!block.ok()) return WithDevice(std::move(block).status());
  return block;
}

DeviceQueue* Queues::Find(const Device* device) const {
  const auto found = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const auto& q) { return &q->device() == device; });
  return found == queues_.end() ? nullptr : found->get();
}

DeviceQueue* Queues::Of(const std::shared_ptr<const Device>& device) {
  if (device == nullptr) return nullptr;
  DeviceQueue* const known = Find(device.get());
  if (known != nullptr) return known;
  queues_.push_back(std::make_unique<DeviceQueue>(&context_, device));
  return queues_.back().get();
}

Status Queues::Synchronize() {
  Status first;
  for (const std::unique_ptr<DeviceQueue>& queue : queues_) {
    Status status = queue->Synchronize();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

}  // namespace msrt
