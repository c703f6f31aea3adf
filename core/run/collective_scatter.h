// msrt.AllScatterAdd: ranks exchange updates and add them all.
#pragma once

#include <span>

#include "core/base/allocator.h"
#include "core/comm/communicator.h"
#include "core/graph/tensor.h"
#include "core/run/run_options.h"

namespace msrt {

// `inputs`: data, indices, updates, as ScatterND has them. `comm` may be null. Updates of an
// element are added in double, in the order of ranks and then of indices, and rounded once.
Status RunAllScatterAdd(std::span<const TensorView> inputs, const TensorView& out,
                        Communicator* comm, const WaitLimit& limit, Allocator* allocator);

}  // namespace msrt
