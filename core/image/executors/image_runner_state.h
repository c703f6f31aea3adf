// What the executors of one run over an image share.
#pragma once

#include <map>

#include "core/base/clock.h"
#include "core/image/executors/image_runner.h"
#include "core/image/executors/stream_memory.h"

namespace msrt {

struct ImageRunState {
  PieceRunner& runner;
  ParallelFor& parallel;
  const ImageIo& io;
  const ImageRunOptions& options;
  size_t fixed_bytes;  // weights and their packed forms
  size_t limit_bytes;
  CountedMemory counter;
  std::map<uint32_t, BoxMemory> stored;  // whole values, by value
  ImageReport report;

  ValueId image() const { return runner.graph().inputs[0]; }
  Result<BoxMemory> NewMemory(ValueId value, const Box& box) {
    return BoxMemory::Make(&counter, runner.type(value).dtype, value, box);
  }
  // Returns the stored values that `values` lists.
  std::vector<PieceMemory> Stored(std::span<const ValueId> values) const;
  // Returns memory for boxes of the targets of a phase: parts of stored values, or new memory in
  // `outputs`.
  Result<std::vector<PieceMemory>> TargetMemory(std::span<const ValueBox> targets,
                                                std::vector<BoxMemory>* outputs);
  // Fills the box of `to`, which has not been read before.
  Status Read(const BoxMemory& to, const Box& box);
  // Writes the boxes of outputs.
  Status Write(const std::vector<BoxMemory>& outputs);
  // Writes the outputs that are stored whole, because other values follow from them.
  Status WriteStored();
  // Whether a piece of the phase has to be computed: in the last one by ImageIo::wanted, before by
  // the share of this rank.
  Result<bool> Wanted(const PhasePlan& plan, size_t phase, bool last_phase,
                      std::span<const ValueBox> targets) const;
  // Passes the boxes of outputs to io.skip.
  Status Skip(std::span<const ValueBox> targets) const;
  // Runs a piece, and notes the peak of memory. kLimitExceeded if kernels took more scratch memory
  // than the plan left for them.
  Status Run(std::span<const PieceMemory> sources, std::span<const PieceMemory> targets);
  Status CheckCancelled() const;
  void Progress(size_t phase, size_t phases, int64_t done, int64_t total) const;
};

// Run one phase: stream_executor.cc, tile_executor.cc.
Status StreamPhaseRows(const PhasePlan& plan, size_t phase, size_t phases, ImageRunState* state,
                       ImageReport::Phase* report);
Status RunPhaseTiles(const PhasePlan& plan, size_t phase, size_t phases, ImageRunState* state,
                     ImageReport::Phase* report);

}  // namespace msrt
