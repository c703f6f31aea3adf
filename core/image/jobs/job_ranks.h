// The ranks that share an image job: the part of each, and how they agree and report. A process
// alone is one rank.
#pragma once

#include <optional>

#include "core/comm/job/rank_watch.h"
#include "core/image/executors/image_plan.h"
#include "core/image/executors/rank_part.h"
#include "core/image/jobs/rank_results.h"

namespace msrt {

// Used by one thread, except Abort.
class JobRanks {
 public:
  // A collective of all ranks of `world`, which outlives the object; null: this rank is alone.
  // kInvalidArgument if the grid has not as many parts as there are ranks. `work` grows while this
  // rank works.
  static Result<std::unique_ptr<JobRanks>> Create(Communicator* world, int64_t rows,
                                                  int64_t columns, const WatchLimits& limits,
                                                  std::shared_ptr<std::atomic<uint64_t>> work);

  // Collectives: from StartWatch to StopWatch, ranks that are stopped or stuck are found.
  void StartWatch();
  void StopWatch();

  bool alone() const { return world_ == nullptr; }
  bool writes() const { return rank_ == 0; }  // has the results
  // Strips are as wide as the image, so all ranks share its rows then.
  RankPart part(ImageExecutor executor) const;
  Communicator* world() { return world_; }        // of all ranks; null: alone
  Communicator* halos() { return halos_.get(); }  // the same, for halos alone

  // A collective: returns the number of each rank.
  Result<std::vector<int64_t>> Gather(int64_t number);

  // On rank 0: answers the others until Join. An error of theirs sets `*stop`.
  void Serve(PieceResults* results, std::atomic<bool>* stop);
  // Waits for the others to be done; returns their first error. `meanwhile` as in ResultServer.
  Status Join(const std::function<void()>& meanwhile = nullptr);
  // What the other ranks did, after Join.
  std::vector<RankWork> work() const;
  // The sum of the fractions of their work that the other ranks have done.
  double fractions() const { return server_ ? server_->fractions() : 0; }

  // On the other ranks; null on rank 0.
  RemoteResults* remote() { return remote_.get(); }

  // A collective, when the results are complete.
  Status Finish();
  // Ends the job on all ranks. Any thread.
  void Abort(const Status& reason);

 private:
  JobRanks(Communicator* world, int64_t rows, int64_t columns)
      : world_(world), rows_(rows), columns_(columns) {}
  Status Connect();
  Status ConnectWatch(const WatchLimits& limits, std::shared_ptr<std::atomic<uint64_t>> work);

  Communicator* const world_;
  const int64_t rows_, columns_;
  int rank_ = 0;
  std::unique_ptr<Communicator> halos_;
  std::unique_ptr<RemoteResults> remote_;
  std::unique_ptr<ResultServer> server_;
  std::unique_ptr<RankWatch> watch_;  // null: there is none; it looks at the communicators above
};

}  // namespace msrt
