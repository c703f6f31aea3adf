// A transformer of the zoo trains on ranks, which are threads: the same bits for any number.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/comm/thread_engine.h"
#include "core/comm/tree_reduce.h"
#include "core/train/trainer.h"
#include "core/train/training_module.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

constexpr int64_t kSequence = 12, kWidth = 16, kWords = 300;

// Sentences of the samples of one rank, all of them attended to but the last words of some.
Batch SentencesOf(uint32_t step, int64_t samples, int rank, int ranks) {
  const auto [first_shard, last_shard] = ShardsOfRank(rank, ranks);
  const int64_t first = FirstSampleOfShard(samples, first_shard),
                last = FirstSampleOfShard(samples, last_shard);
  Batch batch;
  batch.samples = last - first, batch.global_samples = samples;
  std::vector<int64_t> words, mask;
  std::vector<float> target;
  for (int64_t s = first; s < last; ++s) {
    std::mt19937 random(static_cast<uint32_t>(s) * 100 + step);
    for (int64_t w = 0; w < kSequence; ++w) {
      words.push_back(random() % kWords);
      mask.push_back(w < 8 || s % 2 == 0 ? 1 : 0);
    }
    for (int64_t i = 0; i < kSequence * kWidth; ++i)
      target.push_back(static_cast<float>(random() % 1000) / 500 - 1);
  }
  const Dims dims{batch.samples, kSequence};
  batch.tensors = {ConstTensor::Of<int64_t>(DType::kI64, dims, words),
                   ConstTensor::Of<int64_t>(DType::kI64, dims, mask),
                   ConstTensor::Floats({batch.samples, kSequence, kWidth}, target)};
  return batch;
}

struct TrainedBert {
  std::vector<double> losses;
  std::vector<ConstTensor> state;
};

TrainedBert TrainBert(BatchSums sums, Communicator* comm, int rank, int ranks) {
  TrainedBert result;
  zoo::Options zoo_options;
  zoo_options.width = kWidth, zoo_options.layers = 2, zoo_options.heads = 2;
  zoo_options.classes = kWords, zoo_options.sequence = kSequence;
  auto model = zoo::Bert(zoo_options);
  if (!model.ok()) return ADD_FAILURE() << model.status().message(), result;
  TrainingSpec spec;
  spec.optimizer.kind = OptimizerKind::kAdamW;
  spec.loss.kind = LossKind::kMeanSquares;
  auto training = MakeTrainingModule(*std::move(model), spec);
  if (!training.ok()) return ADD_FAILURE() << training.status().message(), result;
  TrainerOptions options;
  options.schedule.rate = 1e-3;
  options.sums = sums;
  options.session.communicator = comm;
  options.compile.typical = {{"input_ids", {16, kSequence}},
                             {"attention_mask", {16, kSequence}},
                             {"target", {16, kSequence, kWidth}}};
  auto environment = TestEnvironment();
  environment->parallel = MakeThreadPool(1);  // each rank has its own
  auto trainer = Trainer::Create(std::move(environment), *std::move(training), options);
  if (!trainer.ok()) return ADD_FAILURE() << trainer.status().message(), result;
  uint32_t number = 0;
  for (const int64_t samples : {16, 11, 16}) {
    auto step = (*trainer)->Step(SentencesOf(number++, samples, rank, ranks));
    if (!step.ok()) return ADD_FAILURE() << step.status().message(), result;
    result.losses.push_back(step->loss);
  }
  auto checkpoint = (*trainer)->MakeCheckpoint();
  if (!checkpoint.ok()) return ADD_FAILURE() << checkpoint.status().message(), result;
  for (CheckpointTensor& t : checkpoint->tensors) result.state.push_back(std::move(t.data));
  return result;
}

std::vector<TrainedBert> TrainBertOnRanks(BatchSums sums, int ranks) {
  std::vector<TrainedBert> results(static_cast<size_t>(ranks));
  auto communicators = MakeThreadCommunicators(ranks);
  EXPECT_TRUE(communicators.ok());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<size_t>(r);
      results[i] = TrainBert(sums, (*communicators)[i].get(), r, ranks);
    });
  }
  for (std::thread& t : threads) t.join();
  return results;
}

TEST(TrainingOnRanks, BertHasTheSameBitsForAnyNumberOfRanks) {
  const TrainedBert alone = TrainBert(BatchSums::kFixed, nullptr, 0, 1);
  ASSERT_EQ(alone.losses.size(), 3u);
  EXPECT_LT(alone.losses[2], alone.losses[0]);
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE(ranks);
    for (const TrainedBert& result : TrainBertOnRanks(BatchSums::kFixed, ranks)) {
      EXPECT_EQ(result.losses, alone.losses);
      ASSERT_EQ(result.state.size(), alone.state.size());
      for (size_t i = 0; i < alone.state.size(); ++i) {
        EXPECT_TRUE(std::equal(alone.state[i].bytes.begin(), alone.state[i].bytes.end(),
                               result.state[i].bytes.begin(), result.state[i].bytes.end()))
            << "tensor " << i;
      }
    }
  }
}

TEST(TrainingOnRanks, BertWithSumsInAnyOrderFollowsOneRank) {
  const TrainedBert alone = TrainBert(BatchSums::kAny, nullptr, 0, 1);
  ASSERT_EQ(alone.losses.size(), 3u);
  for (const TrainedBert& result : TrainBertOnRanks(BatchSums::kAny, 2)) {
    ASSERT_EQ(result.losses.size(), 3u);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(result.losses[i], alone.losses[i], 1e-5 * alone.losses[i]);
  }
}

}  // namespace
}  // namespace msrt::testing
