// Finds ranks of a job that are stopped or stuck, of an image or of a training run. Ranks may
// compute for hours without a message, so an operation that waits long says nothing. Therefore a
// thread of each rank exchanges beats with rank 0, apart from the data. A beat says how long the
// rank has not worked although it waits for no other rank.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/communicator.h"

namespace msrt {

struct WatchLimits {
  // A rank that sends no beat for so long has failed. Zero: not checked, as the control connection
  // of the job does it.
  std::chrono::milliseconds silence{0};
  // A rank that neither works nor waits for another for so long has failed. So have all ranks if
  // none of them works for twice as long. Zero: the ranks are not watched.
  std::chrono::milliseconds stall{0};
};

// A collective: waits until all ranks have begun, for at most `limit`, as a rank that is stopped
// must not be waited for without end before there is a watch either.
Status AwaitAllRanks(Communicator& world, std::chrono::milliseconds limit);

// A failure aborts the communicators of the job with an error that names the rank, its process and
// its last operation. Time in which this process was stopped itself counts little.
class RankWatch {
 public:
  // `pairs`: those of SplitPairs.
  // `awaits`: in which this rank waits for others; they outlive the object. `work` grows while the
  // rank works.
  RankWatch(int rank, const WatchLimits& limits, std::vector<std::unique_ptr<Communicator>> pairs,
            std::vector<const Communicator*> awaits, std::shared_ptr<std::atomic<uint64_t>> work);
  // Without Stop: aborts the job.
  ~RankWatch();

  // All ranks start and stop the watch. From Start to the first beat the limit is that of a stall:
  // the other ranks may start later. Stop returns when all ranks stop, or after an abort.
  void Start();
  void Stop();
  // While it is set, the rank waits for others without an operation.
  void set_waits(bool waits) { waits_.store(waits); }

 private:
  struct Beat;
  struct Peer {
    std::unique_ptr<Communicator> pair;
    int rank = 0;
    uint64_t work = 0;
    std::string name, doing;
  };

  void Watch(Peer* peer);
  Beat NextBeat();
  Status Exchange(Peer* peer, const Beat& mine, Beat* theirs, std::chrono::milliseconds limit);
  Status Check(Peer* peer, const Beat& theirs);
  Status SilenceError(const Peer& peer, std::chrono::milliseconds limit) const;
  std::string Doing() const;

  const int rank_;
  const WatchLimits limits_;
  const std::chrono::milliseconds interval_;
  std::vector<Peer> peers_;
  const std::vector<const Communicator*> awaits_;
  const std::shared_ptr<std::atomic<uint64_t>> work_;
  std::atomic<bool> waits_{false};

  mutable std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::chrono::steady_clock::time_point last_look_;
  uint64_t seen_work_ = 0;
  std::chrono::nanoseconds idle_{0};      // this rank
  std::chrono::nanoseconds all_idle_{0};  // all ranks, on rank 0
  std::vector<std::thread> threads_;
};

}  // namespace msrt
