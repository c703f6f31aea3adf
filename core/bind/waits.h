// Decides when the host must wait for a device. The steps of a device run in order on its stream,
// the host runs its own in order at once. They share only host memory, which copies from and to
// devices read and write while the host works.
#pragma once

#include "core/bind/binding.h"

namespace msrt {

// Fills in `waits` and `event` of the steps: a step that touches host memory which an unfinished
// copy of another stream writes (or reads, if the step writes) waits for that copy. A wait covers
// everything enqueued on that stream before.
void AddWaits(size_t device_count, Binding* binding);

}  // namespace msrt
