// Values between memories. A program states on which device it expects its inputs and leaves its
// outputs (Placement::device_values); all other values of frames are on the host. Values that cross
// over are copied here, once.
#pragma once

#include "core/run/device_queue.h"
#include "core/run/frame.h"

namespace msrt {

// Returns the device on which the program expects input i; null: the host.
const Device* DeviceOfInput(const Program& program, size_t i);

class DeviceValues {
 public:
  DeviceValues(RunContext* context, Queues* queues) : context_(*context), queues_(*queues) {}

  // Returns the session's queue for a device of the frame's program.
  Result<DeviceQueue*> QueueOf(Frame* frame, uint16_t device, size_t event_count = 0);
  // Waits until devices have read the stable inputs of calls; see Frame::stable_from.
  Status JoinReads();
  // Copies the value of a slot to the host if it is only on a device.
  Status FetchState(size_t slot) const;
  // Moves input i of the frame to where its program expects it. Requires that it is elsewhere.
  Status MoveInput(Frame* frame, size_t i);
  // Makes room for a tensor on a device: the caller's if it is bound there, else the cell's own.
  Status Allocate(Frame* frame, ResultCell* cell, uint16_t device, const Type& type);
  // Copies a result of the run to the memory that is bound to it, if it was made elsewhere.
  Status DeliverBound(Frame* frame, ResultCell* cell);
  // Copies a value from a device to the cell's memory on the host. Requires that the device has
  // been used by this session, or that `frame` uses it.
  Status CopyToHost(Frame* frame, ResultCell* cell, const RunValue& value, std::string_view name);

 private:
  // `stable`: the value stays unchanged until the queues are synchronized.
  Status MoveToDevice(Frame* frame, const RunValue& value, bool stable, uint16_t device,
                      ResultCell* cell);

  RunContext& context_;
  Queues& queues_;
};

}  // namespace msrt
