// List ops, which run between the segments of a frame. Each element has its own memory, shared by
// all lists that contain it.
#pragma once

#include "core/run/frame.h"
#include "core/run/state_store.h"

namespace msrt {

// Runs a list step of the frame to its end; the result is in its cell.
Status RunListStep(Frame* frame, const Step& step, const StateStore& states, Budget* budget);

}  // namespace msrt
