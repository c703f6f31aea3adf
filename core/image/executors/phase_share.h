// The phases before the last store small values for the whole image. Several ranks that run the
// same image share them: each computes the rows of its part, and all get the rows of the others.
// Which rank computes a row does not change its bits.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/comm/communicator.h"
#include "core/image/executors/image_plan.h"
#include "core/image/executors/stream_memory.h"

namespace msrt {

// Used by one thread.
class PhaseShare {
 public:
  // A collective of the ranks of `world`, which outlives the object. The phases before the last are
  // shared if all ranks have the same ones, which depends on their memory limits.
  static Result<std::unique_ptr<PhaseShare>> Create(Communicator* world, const PieceRunner& runner,
                                                    const ImagePlan& plan);

  // Whether the ranks share a phase.
  bool Shares(size_t phase) const { return phase < shared_.size() && shared_[phase]; }
  // Whether a strip or tile with these boxes has rows of this rank. Requires a shared phase.
  bool IsWanted(const PieceRunner& runner, const StreamPhase& phase,
                std::span<const ValueBox> boxes) const;
  // A collective: fills the rows of the other ranks. Requires a shared phase, of which this rank
  // has computed the wanted boxes.
  Status Gather(const PieceRunner& runner, const StreamPhase& phase,
                const std::map<uint32_t, BoxMemory>& stored);

 private:
  explicit PhaseShare(Communicator* world) : world_(*world) {}
  Interval RowsOfRank(int64_t rows, int rank) const {
    return {rows * rank / world_.size(), rows * (rank + 1) / world_.size()};
  }
  Status GatherTarget(const StreamTarget& target, const Dims& dims, const PieceMemory& whole);

  Communicator& world_;
  std::vector<bool> shared_;  // by phase
};

}  // namespace msrt
