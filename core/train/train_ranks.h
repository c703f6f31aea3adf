// The ranks of a training run, and what they tell each other. Rank 0 alone reads and writes
// checkpoints, writes results and prints.
#pragma once

#include <string>

#include "core/comm/communicator.h"
#include "core/train/dataset.h"
#include "core/train/metrics.h"

namespace msrt {

class TrainRanks {
 public:
  TrainRanks() = default;  // one rank alone
  // `communicator` must outlive this; null: one rank alone.
  explicit TrainRanks(Communicator* communicator) : communicator_(communicator) {}

  Communicator* communicator() const { return communicator_; }  // null: alone
  int rank() const { return communicator_ == nullptr ? 0 : communicator_->rank(); }
  int size() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
  bool is_first() const { return rank() == 0; }

  // Collectives; without other ranks they return what they get.
  Status CheckSame(std::string_view what, std::string_view text, std::string_view fix) const;
  Result<std::string> TextOfFirst(std::string text) const;
  Result<bool> AnySays(bool says) const;
  Result<int64_t> Sum(int64_t number) const;
  // Ends the other ranks with this error.
  void Fail(const Status& status) const;

 private:
  Communicator* communicator_ = nullptr;
};

// The metrics of an evaluation that is divided among ranks. Losses are added up for each virtual
// shard, then in the fixed tree, so that their sum has the same bits for any number of ranks.
class RankMetrics {
 public:
  RankMetrics(const TrainRanks& ranks, bool by_shards, int64_t classes);

  // Adds the scores of this rank's samples of a batch; arguments as in MetricSums::Add.
  Status Add(std::span<const float> scores, std::span<const int64_t> labels, const Batch& batch,
             const ClassLoss& loss);
  int64_t classes() const { return shards_[0].confusion.classes(); }
  // Forgets everything; the ranks must have the same number of classes.
  void Reset(int64_t classes);
  // A collective: the sums of all ranks.
  Result<MetricSums> Combine() const;

 private:
  const TrainRanks ranks_;
  const bool by_shards_;
  int first_shard_ = 0;
  std::vector<MetricSums> shards_;
};

}  // namespace msrt
