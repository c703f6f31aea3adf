// The order in which the steps of a placement are issued. Devices run concurrently with the host,
// so steps that a device can begin are enqueued before the host begins a long step, and the host
// waits for a device only when it has nothing else to do.
#pragma once

#include "core/place/place.h"

namespace msrt {

// A memory plan may need more than the bytes that are live at once: there are gaps between tensors.
inline constexpr double kArenaSlack = 2;

// Returns the bytes that a memory plan reserves for a tensor of so many bytes.
double ArenaBytes(double bytes);

// Steps keep the order that their values and effects (state) need. Among those that could come
// next, device steps come first, then host steps that need not wait for a device, each kind in its
// original order. Tensors that a device makes early live longer: `rooms` has, by device, the bytes
// available for tensors (infinity: no limit). A step that would exceed them before its turn waits
// for its turn, and so do later steps of the same device.
void OrderSteps(const OfferedGraph& graph, std::span<const double> rooms, Placement* placement);

}  // namespace msrt
