#include "core/train/train_ranks.h"

#include <algorithm>

#include "core/comm/reduce_shards.h"
#include "core/comm/tree_reduce.h"
#include "core/train/rank_agreement.h"

namespace msrt {

Status TrainRanks::CheckSame(std::string_view what, std::string_view text,
                             std::string_view fix) const {
  if (size() == 1) return OkStatus();
  return CheckSameOnRanks(*communicator_, what, text, fix);
}

Result<std::string> TrainRanks::TextOfFirst(std::string text) const {
  if (size() == 1) return text;
  return TextOfFirstRank(*communicator_, std::move(text));
}

Result<bool> TrainRanks::AnySays(bool says) const {
  if (size() == 1) return says;
  return AnyRankSays(*communicator_, says);
}

Result<int64_t> TrainRanks::Sum(int64_t number) const {
  if (size() > 1) MSRT_RETURN_IF_ERROR(SumOverRanks(*communicator_, {&number, 1}));
  return number;
}

void TrainRanks::Fail(const Status& status) const {
  if (communicator_ != nullptr) communicator_->Abort(status);
}

RankMetrics::RankMetrics(const TrainRanks& ranks, bool by_shards, int64_t classes)
    : ranks_(ranks), by_shards_(by_shards) {
  Reset(classes);
}

void RankMetrics::Reset(int64_t classes) {
  const auto [first, last] = ShardsOfRank(ranks_.rank(), ranks_.size());
  first_shard_ = first;
  shards_.assign(by_shards_ ? static_cast<size_t>(last - first) : size_t{1}, MetricSums(classes));
}

Status RankMetrics::Add(std::span<const float> scores, std::span<const int64_t> labels,
                        const Batch& batch, const ClassLoss& loss) {
  if (batch.samples == 0) return OkStatus();
  const auto samples = static_cast<size_t>(batch.samples);
  const size_t of_scores = scores.size() / samples, of_labels = labels.size() / samples;
  const auto inner = static_cast<int64_t>(of_labels);
  if (!by_shards_) return shards_[0].Add(scores, labels, inner, loss);
  const auto border = [&](size_t shard) {
    const int at = first_shard_ + static_cast<int>(shard);
    return static_cast<size_t>(FirstSampleOfShard(batch.global_samples, at) -
                               FirstSampleOfShard(batch.global_samples, first_shard_));
  };
  for (size_t s = 0; s < shards_.size(); ++s) {
    const size_t begin = border(s), count = border(s + 1) - begin;
    if (count == 0) continue;
    MSRT_RETURN_IF_ERROR(shards_[s].Add(scores.subspan(begin * of_scores, count * of_scores),
                                        labels.subspan(begin * of_labels, count * of_labels), inner,
                                        loss));
  }
  return OkStatus();
}

Result<MetricSums> RankMetrics::Combine() const {
  MetricSums all(classes());
  std::vector<const void*> losses;
  for (const MetricSums& shard : shards_) {
    all.confusion.Add(shard.confusion);
    all.in_top5 += shard.in_top5;
    losses.push_back(&shard.loss_sum);
  }
  Communicator* const comm = ranks_.communicator();
  if (comm == nullptr) {
    TreeReduce(losses, &all.loss_sum, 1, CommType::kF64, CommReduce::kSum);
    return all;
  }
  const std::span<int64_t> counts = all.confusion.counts();
  MSRT_RETURN_IF_ERROR(SumOverRanks(*comm, counts));
  MSRT_RETURN_IF_ERROR(SumOverRanks(*comm, {&all.in_top5, 1}));
  if (by_shards_) {
    MSRT_RETURN_IF_ERROR(
        ReduceShards(*comm, losses, &all.loss_sum, 1, CommType::kF64, CommReduce::kSum, {}));
    return all;
  }
  all.loss_sum = shards_[0].loss_sum;
  MSRT_ASSIGN_OR_RETURN(
      const CommWorkPtr work,
      comm->AllReduce(&all.loss_sum, 1, CommType::kF64, CommReduce::kSum, CommOrder::kFixedTree));
  MSRT_RETURN_IF_ERROR(work->Wait({}));
  return all;
}

}  // namespace msrt
