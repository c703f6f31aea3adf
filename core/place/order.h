// The order in which the steps of a placement are given out. Devices work beside the host, so what one of them can begin is enqueued
// before the host begins something long, and the host waits for a device only when it has nothing else to do.
#pragma once

#include "core/place/place.h"

namespace msrt {

// Steps keep the order that their values and effects (state) need; among those that could come next, a device's come first, then the
// host's that wait for nobody, each kind in the order it had.
void OrderSteps(const PlacedGraph& graph, Placement* placement);

}  // namespace msrt
