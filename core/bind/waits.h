// When the host must wait for a device. Steps of one device run in order on its stream, the host's
// in order at once; they meet only in host memory, where copies from and to devices read and write
// beside what the host does.
#pragma once

#include "core/bind/binding.h"

namespace msrt {

// Fills in `waits` and `event` of the steps: a step that touches host memory which an unfinished
// copy of another stream writes (or reads, if the step writes) waits for that copy. A wait covers
// everything that its stream was given before.
void AddWaits(size_t device_count, Binding* binding);

}  // namespace msrt
