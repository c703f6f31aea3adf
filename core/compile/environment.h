// The services, delegates and extensions of a runtime, which its models use.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/machine.h"
#include "core/base/parallel_for.h"
#include "core/delegate/delegate.h"
#include "core/extend/registered_kernel.h"
#include "core/passes/pass.h"
#include "ops/registry.h"

namespace msrt {

// Shared by all objects of a runtime. All of it is thread-safe and outlives the models.
struct Environment {
  Allocator* allocator = DefaultAllocator();
  Io* io = DefaultIo();
  Clock* clock = DefaultClock();
  Log log;
  std::shared_ptr<ParallelFor> parallel;
  std::vector<std::shared_ptr<const Device>> devices;
  std::vector<std::shared_ptr<const Delegate>> delegates;
  const Evaluator* evaluator = nullptr;
  std::vector<RegisteredKernel> kernels;  // run by the delegate "kernels"
  std::vector<AddedPass> passes;          // user-defined passes
  std::shared_ptr<const OpSet> ops;  // user-defined ops; null: none. Nodes point to its entries
  std::optional<Machine> machine;    // measured; empty: a typical one is assumed
  // Time to wake the thread team and to wait for it at the end. A model that several threads would
  // shorten by less, hand-overs between steps included, runs on the calling thread alone.
  double wake_threads_seconds = 50e-6;
};

}  // namespace msrt
