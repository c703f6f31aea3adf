// Calls of graphs: a frame is pushed and its inputs are bound; the executor then runs it.
#pragma once

#include <span>
#include <vector>

#include "core/run/frame_stack.h"
#include "core/run/segments.h"

namespace msrt {

class Calls {
 public:
  Calls(RunContext* context, FrameStack* frames, Segments* segments)
      : context_(*context), frames_(*frames), segments_(*segments) {}

  // Inputs are used in place. Results go to the cells. Inputs from `stable_from` on stay unchanged
  // until the caller has synchronized its queues.
  Status Call(uint32_t graph, std::span<const RunValue> inputs,
              std::span<ResultCell* const> outputs, size_t stable_from = SIZE_MAX);
  // The same with inputs that are moved into the frame: loops save counting their owners twice.
  Status Call(uint32_t graph, std::vector<RunValue>&& inputs, std::span<ResultCell* const> outputs,
              size_t stable_from = SIZE_MAX);
  // The callee replaces the caller: its arguments are copied into its own memory, and its results
  // go to the caller's outputs.
  Status TailCall(uint32_t graph, std::span<const RunValue> inputs);

 private:
  Result<Frame*> Push(uint32_t graph, std::span<ResultCell* const> outputs, size_t stable_from);

  RunContext& context_;
  FrameStack& frames_;
  Segments& segments_;
};

}  // namespace msrt
