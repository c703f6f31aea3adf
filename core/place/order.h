// The order in which the steps of a placement are given out. Devices work beside the host, so what
// one of them can begin is enqueued before the host begins something long, and the host waits for a
// device only when it has nothing else to do.
#pragma once

#include "core/place/place.h"

namespace msrt {

// A memory plan may need more than the bytes that are live at once: there are gaps between tensors.
inline constexpr double kArenaSlack = 2;

// What a memory plan counts for a tensor of so many bytes.
double ArenaBytes(double bytes);

// Steps keep the order that their values and effects (state) need; among those that could come
// next, a device's come first, then the host's that wait for nobody, each kind in the order it had.
// What a device begins early lives longer there: `rooms` says, by device, how many bytes it has for
// tensors (infinity: no limit), and a step that would take more than that before its turn has to
// wait for it, as have those of the same device behind it.
void OrderSteps(const OfferedGraph& graph, std::span<const double> rooms, Placement* placement);

}  // namespace msrt
