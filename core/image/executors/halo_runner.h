// Computes the part of an image that one rank has, all of it at once, and exchanges halos with the
// other ranks. The bits are those of an unsplit run in exact mode.
#pragma once

#include <atomic>

#include "core/image/executors/rank_part.h"
#include "core/image/executors/stream_model.h"
#include "core/run/rank_session.h"

namespace msrt {

// Used by one thread at a time.
class HaloRunner {
 public:
  // A collective of the ranks of `communicator`, which outlives the object and serves it alone. The
  // grid of `part` has as many parts. `memory_cap_bytes`: see RankOptions.
  static Result<std::unique_ptr<HaloRunner>> Create(std::shared_ptr<const Environment> environment,
                                                    Module module, const ImageSize& size,
                                                    CompileOptions options, const RankPart& part,
                                                    Communicator* communicator,
                                                    size_t memory_cap_bytes);

  const RankModule& split() const { return session_->split(); }
  size_t expected_bytes() const { return expected_bytes_; }
  // Cancelled while `*cancelled` is true; it may be set by a signal handler.
  Result<RankReport> Run(const RankIo& io, const std::atomic<bool>& cancelled);

 private:
  std::unique_ptr<RankSession> session_;
  size_t expected_bytes_ = 0;
};

// How an image is cut into parts: the options by which halo runners split.
SplitOptions HaloSplit(const RankPart& part);

}  // namespace msrt
