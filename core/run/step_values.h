// The inputs and results of control and list steps, which run between the segments of a frame.
#pragma once

#include "core/run/resolve.h"

namespace msrt {

const Node& NodeOf(const Frame& frame, const Step& step);
// The control or list step at which the segment in progress ended.
inline const Step& StepAtEnd(Frame* frame) {
  return frame->program().steps[frame->segment().binding->end_step];
}

// Returns input i of the step; a value that is not present if it is omitted.
RunValue InputOf(Frame* frame, const StateStore& states, const Step& step, size_t i);
// Reads a bool or an integer of one element.
Result<int64_t> NumberOf(Frame* frame, const StateStore& states, const Step& step, size_t i);
// Returns the cell that output i of the step goes to.
ResultCell* CellOf(Frame* frame, const Step& step, size_t i);
// Returns the cell for result i of a callee that the caller does not use.
ResultCell* UnwantedCell(Frame* frame, size_t i);

}  // namespace msrt
