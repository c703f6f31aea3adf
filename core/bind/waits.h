// Decides when queues wait for each other. The steps of a queue run in order; the host runs its own
// at once. Queues meet in memory: in the host's, which copies from and to devices touch while the
// host works, and in a device's, from which others copy.
#pragma once

#include "core/bind/binding.h"

namespace msrt {

// Fills in `waits`, `event` and `staged` of the steps and what the binding says about its end: a
// step that touches memory which an unfinished step of another queue writes (or reads, if the step
// writes) waits for that step. A wait covers everything enqueued in that queue before.
void AddWaits(const Program& program, Binding* binding);

}  // namespace msrt
