// Values between memories. The program of a loop body states on which device it expects its inputs
// and leaves its outputs (Placement::device_values); all other values of frames are on the host.
// Values that cross over are copied here, once.
#pragma once

#include <memory>
#include <vector>

#include "core/run/frame_stack.h"

namespace msrt {

// Returns the device on which the program expects input i; null: the host.
const Device* DeviceOfInput(const Program& program, size_t i);

class DeviceValues {
 public:
  DeviceValues(RunContext* context, const FrameStack& frames)
      : context_(*context), frames_(frames) {}

  // Moves input i of the last frame to where its program expects it. Requires that it is elsewhere.
  Status MoveInput(Frame* frame, size_t i);
  // Makes room for a tensor on a device.
  Status Allocate(Frame* frame, ResultCell* cell, uint16_t device, const Type& type);
  // Copies a value from a device to the cell's memory on the host. `producer`: the graph that made
  // it, which is placed again if the device fails.
  Status CopyToHost(ResultCell* cell, const RunValue& value, uint32_t producer,
                    std::string_view name);
  void Trim();

 private:
  Result<Stream*> CopyStream(const Device& device);

  RunContext& context_;
  const FrameStack& frames_;
  std::vector<std::unique_ptr<Stream>> streams_;  // for CopyToHost
  std::vector<const Device*> devices_;            // of streams_
};

}  // namespace msrt
