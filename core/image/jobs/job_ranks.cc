#include "core/image/jobs/job_ranks.h"

namespace msrt {

Result<std::unique_ptr<JobRanks>> JobRanks::Create(Communicator* world, int64_t rows,
                                                   int64_t columns, const WatchLimits& limits,
                                                   std::shared_ptr<std::atomic<uint64_t>> work) {
  std::unique_ptr<JobRanks> ranks(new JobRanks(world, rows, columns));
  if (world == nullptr) return ranks;
  if (rows * columns != world->size())
    return InvalidArgument("a split of ", rows, " x ", columns, " has ", rows * columns,
                           " parts, but the job has ", world->size(),
                           " ranks; start as many ranks as parts");
  ranks->rank_ = world->rank();
  if (limits.stall.count() != 0) MSRT_RETURN_IF_ERROR(AwaitAllRanks(*world, limits.stall));
  MSRT_RETURN_IF_ERROR(ranks->Connect());
  if (limits.stall.count() != 0 && world->size() > 1)
    MSRT_RETURN_IF_ERROR(ranks->ConnectWatch(limits, std::move(work)));
  return ranks;
}

Status JobRanks::Connect() {
  MSRT_ASSIGN_OR_RETURN(halos_, world_->Split(0, rank_, "halos"));
  MSRT_ASSIGN_OR_RETURN(auto pairs, world_->SplitPairs("results"));
  if (rank_ == 0) server_ = std::make_unique<ResultServer>(std::move(pairs));
  else remote_ = std::make_unique<RemoteResults>(std::move(pairs[0]));
  return OkStatus();
}

// Rank 0 answers the others in threads of its own: that these wait says nothing of the rank.
Status JobRanks::ConnectWatch(const WatchLimits& limits,
                              std::shared_ptr<std::atomic<uint64_t>> work) {
  std::vector<const Communicator*> awaits{halos_.get(), world_};
  if (remote_) awaits.push_back(&remote_->pair());
  MSRT_ASSIGN_OR_RETURN(auto pairs, world_->SplitPairs("watch"));
  watch_ = std::make_unique<RankWatch>(rank_, limits, std::move(pairs), std::move(awaits),
                                       std::move(work));
  return OkStatus();
}

void JobRanks::StartWatch() {
  if (watch_) watch_->Start();
}

void JobRanks::StopWatch() {
  if (watch_) watch_->Stop();
}

RankPart JobRanks::part(ImageExecutor executor) const {
  if (executor == ImageExecutor::kStream) return {rank_, rows_ * columns_, 1};
  return {rank_, rows_, columns_};
}

Result<std::vector<int64_t>> JobRanks::Gather(int64_t number) {
  if (alone()) return std::vector<int64_t>{number};
  const auto ranks = static_cast<size_t>(world_->size());
  std::vector<int64_t> numbers(ranks);
  const std::vector<size_t> bytes(ranks, sizeof number);
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, world_->AllGather(&number, numbers.data(), bytes));
  MSRT_RETURN_IF_ERROR(work->Wait({}));
  return numbers;
}

void JobRanks::Serve(PieceResults* results, std::atomic<bool>* stop) {
  if (server_) server_->Start(results, stop);
}

Status JobRanks::Join(const std::function<void()>& meanwhile) {
  if (watch_) watch_->set_waits(true);
  return server_ ? server_->Join(meanwhile) : OkStatus();
}

std::vector<RankWork> JobRanks::work() const {
  return server_ ? server_->work() : std::vector<RankWork>();
}

Status JobRanks::Finish() {
  if (alone()) return OkStatus();
  MSRT_ASSIGN_OR_RETURN(const CommWorkPtr work, world_->Barrier());
  return work->Wait({});
}

void JobRanks::Abort(const Status& reason) {
  if (!alone()) world_->Abort(reason);
}

}  // namespace msrt
