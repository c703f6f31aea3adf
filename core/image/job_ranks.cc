#include "core/image/job_ranks.h"

namespace msrt {

Result<std::unique_ptr<JobRanks>> JobRanks::Create(Communicator* world, int64_t rows,
                                                   int64_t columns) {
  std::unique_ptr<JobRanks> ranks(new JobRanks(world, rows, columns));
  if (world == nullptr) return ranks;
  if (rows * columns != world->size())
    return InvalidArgument("a split of ", rows, " x ", columns, " has ", rows * columns,
                           " parts, but the job has ", world->size(),
                           " ranks; start as many ranks as parts");
  ranks->rank_ = world->rank();
  MSRT_RETURN_IF_ERROR(ranks->Connect());
  return ranks;
}

Status JobRanks::Connect() {
  MSRT_ASSIGN_OR_RETURN(halos_, world_->Split(0, rank_, "halos"));
  std::vector<std::unique_ptr<Communicator>> pairs;
  for (int other = 1; other < world_->size(); ++other) {
    const bool member = rank_ == 0 || rank_ == other;
    MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> pair,
                          world_->Split(member ? 0 : -1, rank_, StrCat("results ", other)));
    if (rank_ == 0) pairs.push_back(std::move(pair));
    else if (rank_ == other) remote_ = std::make_unique<RemoteResults>(std::move(pair));
  }
  if (rank_ == 0) server_ = std::make_unique<ResultServer>(std::move(pairs));
  return OkStatus();
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

Status JobRanks::Join() { return server_ ? server_->Join() : OkStatus(); }

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
