// Decides, from what the ranks of a job report, whether one of them has failed, which one, and what
// to tell the others. No sockets, no threads, no clock of its own; the server's loop drives it.
//
// A failure is found first and described a moment later: until then the survivors report what they
// do, and the launcher how the process ended.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/job/progress.h"

namespace msrt {

using SteadyTime = std::chrono::steady_clock::time_point;

struct JobFailure {
  int rank = 0;  // the culprit
  std::string message;
};

class Monitor {
 public:
  // A rank that sends nothing for `silence_limit` has failed.
  Monitor(int size, std::chrono::milliseconds silence_limit);

  // Refuses ranks out of range, ranks that are there or were, and another size.
  Status Join(uint32_t rank, uint32_t size, std::string host, uint64_t pid, SteadyTime now);
  void Beat(int rank, std::vector<CommProgress> operations, SteadyTime now);
  // The rank ended its part of the job as it should.
  void Leave(int rank, SteadyTime now);
  // The connection was closed, and the rank did not leave before.
  void Disconnect(int rank, SteadyTime now);
  // The rank reports an error of its own.
  void Fail(int rank, std::string reason, SteadyTime now);
  // The launcher saw the process end: `how` is "ended with code 3" or "was killed by signal 9".
  void Exit(int rank, std::string how, bool failed, SteadyTime now);
  // Call every few tens of milliseconds.
  void Tick(SteadyTime now);

  // A failure was found: ask the ranks to report at once.
  bool suspects() const { return suspicion_.has_value(); }
  // The failure, once it is described. Stays the same.
  const JobFailure* failure() const { return failure_ ? &*failure_ : nullptr; }
  // Every rank has left or has failed.
  bool all_left() const;

 private:
  enum class Phase { kAbsent, kJoined, kLeft, kGone };
  enum class Cause { kDeath, kSilence, kDivergence, kOwnError, kDesertion };
  struct Rank {
    Phase phase = Phase::kAbsent;
    std::string host, exit;
    uint64_t pid = 0;
    SteadyTime last_seen;
    std::vector<CommProgress> operations;  // the last of each group
  };
  struct Suspicion {
    int rank;
    Cause cause;
    std::string problem;  // follows the name of the rank
    SteadyTime since;
    CommProgress call;  // of a divergence: the operation in which the ranks differ
  };

  void Suspect(int rank, Cause cause, std::string problem, SteadyTime now,
               const CommProgress& call = {});
  void FindDivergence(int rank, SteadyTime now);
  void FindDeserter(SteadyTime now);
  void FindAbsentees(SteadyTime now);
  void Describe(SteadyTime now);
  bool IsDecided(const Suspicion& divergence) const;
  std::string Name(int rank) const;
  std::string Others(int culprit, SteadyTime now) const;

  const std::chrono::milliseconds silence_limit_;
  std::vector<Rank> ranks_;
  std::optional<Suspicion> suspicion_;
  std::optional<JobFailure> failure_;
  SteadyTime last_tick_;
};

}  // namespace msrt
