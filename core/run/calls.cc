#include "core/run/calls.h"

#include <algorithm>

#include "core/run/results.h"

namespace msrt {

namespace {

bool AnySlot(std::span<const RunValue> values) {
  return std::any_of(values.begin(), values.end(), [](const RunValue& v) { return v.slot >= 0; });
}

}  // namespace

Result<Frame*> Calls::Push(uint32_t graph, std::span<ResultCell* const> outputs,
                           size_t stable_from) {
  MSRT_ASSIGN_OR_RETURN(Frame* const frame, frames_.Push(graph));
  frame->stable_from = stable_from;
  frame->outputs.assign(outputs.begin(), outputs.end());
  return frame;
}

Status Calls::Call(uint32_t graph, std::span<const RunValue> inputs,
                   std::span<ResultCell* const> outputs, size_t stable_from) {
  MSRT_ASSIGN_OR_RETURN(Frame* const frame, Push(graph, outputs, stable_from));
  std::copy(inputs.begin(), inputs.end(), frame->inputs.begin());
  frame->passes_slots = AnySlot(inputs);
  return segments_.BindFirst(frame);
}

Status Calls::Call(uint32_t graph, std::vector<RunValue>&& inputs,
                   std::span<ResultCell* const> outputs, size_t stable_from) {
  MSRT_ASSIGN_OR_RETURN(Frame* const frame, Push(graph, outputs, stable_from));
  frame->passes_slots = AnySlot(inputs);
  std::move(inputs.begin(), inputs.end(), frame->inputs.begin());
  return segments_.BindFirst(frame);
}

Status Calls::TailCall(uint32_t graph, std::span<const RunValue> inputs) {
  const Frame& caller = frames_.last();
  MSRT_ASSIGN_OR_RETURN(Frame* const callee, frames_.PushTail(graph));
  if (callee->arguments.size() < inputs.size()) callee->arguments.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].slot >= 0) {  // no frame owns it, and the callee does not write the slot
      callee->inputs[i] = inputs[i];
      continue;
    }
    ResultCell& cell = callee->arguments[i];
    MSRT_RETURN_IF_ERROR(Deliver(&cell, inputs[i], nullptr, "argument", &context_.budget));
    callee->inputs[i] = cell.value;
  }
  callee->passes_slots = AnySlot(inputs);
  callee->outputs = caller.outputs;
  callee->stable_from = SIZE_MAX;
  frames_.DropCaller();
  return segments_.BindFirst(callee);
}

}  // namespace msrt
