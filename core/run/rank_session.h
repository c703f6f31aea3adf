// Runs the part of a model that one rank has: reads its boxes of the inputs, computes, exchanges
// halos with the other ranks, and writes its boxes of the outputs. RunThreadRanks runs all ranks in
// one process.
#pragma once

#include <functional>

#include "core/compile/compile_rank.h"
#include "core/run/run_context.h"
#include "core/run/run_options.h"

namespace msrt {

class Communicator;  // core/comm/communicator.h

// Boxes are in global coordinates; memory is plain and has the dims of the box. An error ends the
// run on all ranks.
struct RankIo {
  // Fills `memory` with a box of an input. Boxes of several ranks may overlap.
  std::function<Status(size_t input, const Box& box, const TensorView& memory)> read;
  // Takes a box of an output. Each element of an output comes from exactly one rank.
  std::function<Status(size_t output, const Box& box, const TensorView& memory)> write;
  // Called with the estimated fraction of the computation that is done, by the thread that
  // computes. May be null.
  std::function<void(double fraction)> progress = {};
};

struct RankOptions {
  size_t entry = 0;
  CompileOptions compile;
  SplitOptions split;
  // What a rank holds during a run: inputs, messages, weights and their packed forms, and its
  // session. A run that needs more fails with kLimitExceeded. 0: no cap.
  size_t memory_cap_bytes = 0;
};

struct RankReport {
  ExchangeTotals exchanges;
  double seconds = 0, read_seconds = 0, write_seconds = 0;  // `seconds` is without the others
  size_t memory_bytes = 0;                                  // of the session
  size_t peak_bytes = 0;  // that, inputs, the largest messages, weights and their packed forms
};

// Used by one thread at a time, except Cancel.
class RankSession {
 public:
  // `inputs` are the dims of the whole inputs. The communicator outlives the session, which alone
  // uses it, and has as many ranks as the grid of `options.split`. Each rank of a process needs an
  // environment with its own threads. If this fails, the communicator is aborted.
  static Result<std::unique_ptr<RankSession>> Create(std::shared_ptr<const Environment> environment,
                                                     Module module, std::span<const Dims> inputs,
                                                     const RankOptions& options,
                                                     Communicator* communicator);
  ~RankSession();

  const RankModule& split() const;  // without its module
  const CompiledModel& model() const;
  // The memory that a run needs, found by binding it: arena, inputs, outputs, messages, weights and
  // their packed forms. Scratch memory of kernels is not known before they run.
  Result<size_t> ExpectedBytes() const;

  // May be called again, by all ranks, unless it failed.
  Result<RankReport> Run(const RankIo& io, const RunOptions& options);
  // Any thread. Stops the run in progress on all ranks.
  void Cancel();

 private:
  class Impl;
  explicit RankSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Runs a model once, with a rank in a thread for each environment; no two have threads in common.
// `io` is called by one rank at a time. The reports are by rank.
Result<std::vector<RankReport>> RunThreadRanks(
    std::span<const std::shared_ptr<const Environment>> environments, const Module& module,
    std::span<const Dims> inputs, const RankOptions& options, const RankIo& io,
    const RunOptions& run);

}  // namespace msrt
