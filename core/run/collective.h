// Runs a collective node: the tensors of an AllReduce are one message.
#pragma once

#include <span>

#include "core/base/allocator.h"
#include "core/base/parallel_for.h"
#include "core/comm/communicator.h"
#include "core/graph/tensor.h"
#include "core/run/run_context.h"
#include "ops/collective.h"

namespace msrt {

// `comm` may be null: a group of one rank. If the limit expires or the operation fails, the
// communicator is aborted: its operation still uses the buffers. Adds to `totals`.
Status RunCollective(const CollectivePlan& plan, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, Communicator* comm,
                     const WaitLimit& limit, Allocator* allocator, ExchangeTotals* totals);

}  // namespace msrt
