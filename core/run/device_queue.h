// A queue of a session on a device: one stream, in which all frames of the session enqueue their
// steps for that device. Memory of frames is therefore reused in the order of the stream, and no
// frame has to wait for its end.
#pragma once

#include <memory>
#include <vector>

#include "core/delegate/device.h"
#include "core/run/run_context.h"

namespace msrt {

// Failures of the device are recorded in the context: the graph that used the queue last is placed
// again without the device.
class DeviceQueue {
 public:
  DeviceQueue(RunContext* context, std::shared_ptr<const Device> device)
      : context_(*context), device_(std::move(device)) {}
  ~DeviceQueue();
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  // Called before a frame of this graph enqueues: makes the stream and as many events as missing.
  Status Use(uint32_t graph, const std::shared_ptr<const EntryProgram>& placed, size_t event_count);

  const Device& device() const { return *device_; }
  // For work that is enqueued past this object.
  Stream& stream() {
    busy_ = true;
    return *stream_;
  }
  const Host& host() const { return *placed_->program->host; }

  // `staged`: the host copies the source first, which may change at once.
  Status CopyToDevice(void* to, const void* from, size_t bytes, bool staged);
  Status CopyToHost(void* to, const void* from, size_t bytes);
  Status CopyPeer(void* to, const Device& source, const void* from, size_t bytes);
  Status Convert(const TensorView& from, const TensorView& to);
  Status RunRecording(const std::shared_ptr<const Recording>& recording);

  Status Record(uint32_t event);
  // The host waits.
  Status Wait(uint32_t event);
  // This queue waits for an event of another one; the host does if the device cannot.
  Status WaitFor(DeviceQueue* other, uint32_t event);
  // This queue waits for everything that was enqueued in the other one.
  Status Join(DeviceQueue* other);
  // The host waits for everything. Does nothing if nothing was enqueued since the last time.
  // Returns the first failure.
  Status Synchronize();
  // Called after each segment: holds the kernels of its binding until the work is done, and keeps
  // the host from running too far ahead.
  Status EndSegment(const std::shared_ptr<const Binding>& binding);

  // Holds a packed form that enqueued work reads. Call CountForms with the bytes of all such forms:
  // beyond a limit, EndSegment waits until the work is done.
  void HoldForm(std::shared_ptr<const void> form) { Hold(std::move(form)); }
  void CountForms(size_t bytes) { form_bytes_ += bytes; }

  // Grows the block to at least `bytes`; its contents are lost if it grows. Work in the queue may
  // still use the old memory: it is freed at the next Synchronize.
  Status Ensure(DeviceBlock* block, size_t bytes, std::string_view what);
  // The same for a shared block: it is replaced, never freed under a reader.
  Status Ensure(std::shared_ptr<DeviceBlock>* block, size_t bytes, std::string_view what);

  // Adds the device's name to an error, and records the failure if another could do its work.
  Status WithDevice(Status status);

 private:
  bool Fits(const DeviceBlock& block, size_t bytes) const {
    return block.data() != nullptr && block.device() == device_.get() && block.bytes() >= bytes;
  }
  Result<DeviceBlock> Allocate(size_t bytes, std::string_view what);
  // Holds what enqueued work uses.
  void Hold(std::shared_ptr<const void> used) {
    if (held_.empty() || held_.back() != used) held_.push_back(std::move(used));
  }
  Result<const void*> Stage(const void* from, size_t bytes);
  Status MakeEvents(size_t count);

  RunContext& context_;
  const std::shared_ptr<const Device> device_;
  std::shared_ptr<const EntryProgram> placed_;  // that used the queue last
  uint32_t graph_ = 0;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Event>> events_;  // the first is for Join
  StagingBlock staging_;
  size_t staged_bytes_ = 0;
  std::vector<std::shared_ptr<const void>> held_;            // until the next Synchronize
  std::vector<std::shared_ptr<const DeviceBlock>> retired_;  // the same; replaced by larger ones
  size_t segments_ = 0;                                      // since the last Synchronize
  size_t form_bytes_ = 0;                                    // the same
  bool busy_ = false;  // work may have been enqueued since the last Synchronize
};

// The queues of a session.
class Queues {
 public:
  explicit Queues(RunContext* context) : context_(*context) {}

  // Returns the queue on this device; null for the host.
  DeviceQueue* Of(const std::shared_ptr<const Device>& device);
  // Returns the queue on this device if it exists; else null.
  DeviceQueue* Find(const Device* device) const;
  // Waits for all queues. Returns the first failure.
  Status Synchronize();
  // Between runs.
  void Trim() { queues_.clear(); }

 private:
  RunContext& context_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
};

}  // namespace msrt
