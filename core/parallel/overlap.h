// Cuts a piece of a node so that most of it can be computed while its halo is in flight.
#pragma once

#include <span>
#include <vector>

#include "core/region/resolved_space.h"

namespace msrt {

// Returns the interior of `piece`, which needs only the part `have` of each input, and after it the
// rest in boxes: for each axis the part before the interior and the part behind it, where they are
// not empty. Only the piece itself if it has no interior, is all interior, or if its output cannot
// be joined from such boxes. The boxes meet at multiples of the granule of output 0 (by dim).
std::vector<Box> InteriorAndRest(const ResolvedSpace& space, std::span<const int64_t> granule,
                                 const Box& piece, std::span<const Box> have);

// Returns the dim of the output that is the axis itself; -1 if there is none.
int DimOfAxis(const TensorMap& output, int axis);

}  // namespace msrt
