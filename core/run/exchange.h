// Runs an msrt.Exchange: packs what this rank sends, exchanges it with the other ranks, and fills
// the outputs from its own part and from what it received.
#pragma once

#include <span>

#include "core/base/allocator.h"
#include "core/base/parallel_for.h"
#include "core/comm/communicator.h"
#include "core/graph/tensor.h"
#include "core/run/run_context.h"
#include "ops/exchange.h"

namespace msrt {

// `inputs` has the own box, or nothing; `outputs` the required ones. If the limit expires, the
// communicator is aborted: its operation still uses the buffers. Adds to `totals`.
Status RunExchange(const ExchangePlan& plan, std::span<const TensorView> inputs,
                   std::span<const TensorView> outputs, Communicator* comm, const WaitLimit& limit,
                   Allocator* allocator, ExchangeTotals* totals);

// Copies the common part of two boxes of one value from `from` to `to`. Each is dense, and plain or
// channels last.
void CopyCommon(const TensorView& from, const Box& from_box, const TensorView& to,
                const Box& to_box);

}  // namespace msrt
