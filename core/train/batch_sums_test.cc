// The batch of a training step divided among ranks, which are threads: the same bits for any
// number.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "core/base/parallel_for.h"
#include "core/comm/communicator.h"
#include "core/comm/thread_engine.h"
#include "core/comm/tree_reduce.h"
#include "core/train/trainer.h"
#include "core/train/training_module.h"
#include "ops/builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

using testing::TestEnvironment;

constexpr int64_t kClasses = 3, kSize = 8;

std::vector<float> Draw(size_t count, uint32_t seed, float scale) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(random);
  return values;
}

ValueId Require(Result<ValueId> v) {
  EXPECT_TRUE(v.ok()) << v.status().message();
  return v.ok() ? *v : ValueId{0};
}

// Convolution, batch normalisation, Relu, strided convolution, flatten, dense.
Module NormedNet() {
  Module module;
  module.name = "normed";
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  uint32_t seed = 1;
  const auto weights = [&](const char* name, Dims dims) {
    return g.AddConstant(
        name, ConstTensor::Floats(dims, Draw(static_cast<size_t>(dims.elements()), seed++, 0.5f)));
  };
  const auto filled = [&](const char* name, float value) {
    return g.AddConstant(name, ConstTensor::Floats({5}, std::vector<float>(5, value)));
  };
  const ValueId x =
      g.AddInput("x", Type::Tensor(DType::kF32, {module.SymbolFor("batch"), 2, kSize, kSize}));
  ValueId v = Require(b.Add("Conv", "conv1", {x, weights("w1", {5, 2, 3, 3}), weights("b1", {5})},
                            {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  v = Require(b.Add("BatchNormalization", "norm",
                    {v, filled("scale", 1.5f), filled("shift", 0.25f), filled("mean", 0),
                     filled("variance", 1)}));
  v = Require(b.Add("Relu", "relu", {v}));
  v = Require(b.Add("Conv", "conv2", {v, weights("w2", {4, 5, 3, 3})},
                    {{"strides", std::vector<int64_t>{2, 2}}}));
  v = Require(b.Add("Flatten", "flat", {v}));
  v = Require(
      b.Add("Gemm", "dense", {v, weights("w3", {36, kClasses}), weights("b3", {kClasses})}));
  g.outputs = {Require(b.Add("Softmax", "probabilities", {v}))};
  return module;
}

// The samples of one rank of a batch.
Batch PartOf(uint32_t seed, int64_t samples, int rank, int ranks, bool ignores = false) {
  const auto [first_shard, last_shard] = ShardsOfRank(rank, ranks);
  const int64_t first = FirstSampleOfShard(samples, first_shard),
                last = FirstSampleOfShard(samples, last_shard);
  const size_t each = 2 * kSize * kSize;
  const std::vector<float> all = Draw(static_cast<size_t>(samples) * each, 100 + seed, 1);
  Batch batch;
  batch.samples = last - first, batch.global_samples = samples;
  batch.tensors.push_back(
      ConstTensor::Floats({batch.samples, 2, kSize, kSize},
                          std::vector<float>(all.begin() + first * static_cast<int64_t>(each),
                                             all.begin() + last * static_cast<int64_t>(each))));
  std::vector<int64_t> labels;
  for (int64_t i = first; i < last; ++i)
    labels.push_back(ignores && i % 4 == 1 ? -1 : (i * 7 + seed) % kClasses);
  batch.tensors.push_back(ConstTensor::Int64s(labels));
  return batch;
}

struct TrainedState {
  std::vector<ConstTensor> state;
  std::vector<double> losses;
  std::vector<int64_t> correct;
};

using TrainOne = std::function<TrainedState(Communicator*, int rank, int ranks)>;

// Runs the function on threads, one for each rank.
std::vector<TrainedState> OnRanks(int ranks, const TrainOne& train) {
  std::vector<TrainedState> results(static_cast<size_t>(ranks));
  auto communicators = MakeThreadCommunicators(ranks);
  EXPECT_TRUE(communicators.ok());
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<size_t>(r);
      results[i] = train((*communicators)[i].get(), r, ranks);
    });
  }
  for (std::thread& t : threads) t.join();
  return results;
}

Result<std::unique_ptr<Trainer>> MakeTrainer(const TrainingSpec& spec, BatchSums sums,
                                             Communicator* comm, Module model = NormedNet(),
                                             Dims typical = {16, 2, kSize, kSize}) {
  MSRT_ASSIGN_OR_RETURN(Module training, MakeTrainingModule(std::move(model), spec));
  TrainerOptions options;
  options.schedule.rate = 0.05;
  options.sums = sums;
  options.session.communicator = comm;
  options.compile.typical = {{"x", typical}, {"target", {16}}};
  auto environment = TestEnvironment();
  environment->parallel = MakeThreadPool(comm == nullptr ? 2 : 1);  // each rank has its own
  return Trainer::Create(std::move(environment), std::move(training), options);
}

TrainedState StateOf(const Trainer& trainer) {
  TrainedState result;
  auto checkpoint = trainer.MakeCheckpoint();
  EXPECT_TRUE(checkpoint.ok());
  for (CheckpointTensor& t : checkpoint->tensors) result.state.push_back(std::move(t.data));
  return result;
}

// Batches of many sizes: even, uneven, fewer samples than shards, one.
constexpr int64_t kBatches[] = {16, 13, 24, 5, 8, 1};

TrainOne Training(TrainingSpec spec, BatchSums sums, bool ignores = false) {
  return [=](Communicator* comm, int rank, int ranks) {
    auto trainer = MakeTrainer(spec, sums, comm);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return TrainedState();
    TrainedState steps;
    for (uint32_t i = 0; i < std::size(kBatches); ++i) {
      auto step = (*trainer)->Step(PartOf(i, kBatches[i], rank, ranks, ignores));
      EXPECT_TRUE(step.ok()) << step.status().message();
      if (!step.ok()) return TrainedState();
      steps.losses.push_back(step->loss);
      steps.correct.push_back(step->correct);
    }
    TrainedState result = StateOf(**trainer);
    result.losses = steps.losses, result.correct = steps.correct;
    return result;
  };
}

void ExpectSameBits(const TrainedState& a, const TrainedState& b) {
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.correct, b.correct);
  ASSERT_EQ(a.state.size(), b.state.size());
  ASSERT_FALSE(a.state.empty());
  for (size_t i = 0; i < a.state.size(); ++i) {
    EXPECT_TRUE(std::equal(a.state[i].bytes.begin(), a.state[i].bytes.end(),
                           b.state[i].bytes.begin(), b.state[i].bytes.end()))
        << "tensor " << i;
  }
}

void ExpectSameBitsForAnyRanks(const TrainOne& train) {
  const TrainedState alone = train(nullptr, 0, 1);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE(ranks);
    for (const TrainedState& result : OnRanks(ranks, train)) ExpectSameBits(result, alone);
  }
}

TEST(BatchSums, FixedSumsHaveTheSameBitsForAnyNumberOfRanks) {
  ExpectSameBitsForAnyRanks(Training({}, BatchSums::kFixed));
}

TEST(BatchSums, FixedSumsCoverWeightsIgnoredLabelsAndClipping) {
  TrainingSpec spec;
  spec.loss.ignore_index = -1;
  spec.loss.label_smoothing = 0.1;
  spec.class_weights = {1, 2, 0.5};
  spec.clip_norm = 0.5;
  spec.optimizer.kind = OptimizerKind::kAdamW;
  spec.loss_scale.dynamic = true;
  spec.loss_scale.initial = 1024;
  ExpectSameBitsForAnyRanks(Training(spec, BatchSums::kFixed, /*ignores=*/true));
}

// ---- words: tables of embeddings, and random ops with the samples along any dim -----------------

constexpr int64_t kWords = 6, kTable = 100;  // words of a sample

Module WordNet(bool draws) {
  Module module;
  module.name = "words";
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  uint32_t seed = 50;
  const auto weights = [&](const char* name, Dims dims) {
    return g.AddConstant(
        name, ConstTensor::Floats(dims, Draw(static_cast<size_t>(dims.elements()), seed++, 0.5f)));
  };
  const auto number = [&](int64_t n) {
    return g.AddConstant("number", ConstTensor::Of<int64_t>(DType::kI64, {}, std::array{n}));
  };
  const auto add = [&](const char* op, const char* name, std::vector<ValueId> inputs,
                       AttrList attrs = {}) {
    return Require(b.Add(op, name, std::move(inputs), std::move(attrs)));
  };
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kI64, {module.SymbolFor("batch"), kWords}));
  // The rows of a batch are fewer than those of the first and the last table, and more than those
  // of the second.
  const ValueId words = add("Gather", "words", {weights("table", {kTable, 4}), x});
  const ValueId kinds =
      add("Gather", "kinds", {weights("kind_table", {2, 4}), add("Mod", "kind", {x, number(2)})});
  const std::vector<int64_t> swapped{1, 0, 2};
  ValueId late = add("Gather", "late",
                     {weights("late_table", {kTable, 4}),
                      add("Transpose", "turned", {x}, {{"perm", std::vector<int64_t>{1, 0}}})});
  ValueId v = add("Add", "sum", {words, kinds});
  if (draws) {
    late = add("Dropout", "late_drop", {late}, {{"ratio", 0.25}, {"seed", 5.0}});
    late = add("Add", "noisy", {late, add("RandomNormalLike", "noise", {late}, {{"scale", 0.1}})});
    v = add("Dropout", "drop", {v}, {{"ratio", 0.5}});
  }
  v = add("Add", "all", {v, add("Transpose", "back", {late}, {{"perm", swapped}})});
  v = add("Flatten", "flat", {v});
  if (draws) {
    // Rows that follow the batch six to one.
    const ValueId rows = add("Reshape", "rows", {v}, {{"shape", std::vector<int64_t>{-1, 4}}});
    v = add("Reshape", "joined", {add("Dropout", "row_drop", {rows}, {{"ratio", 0.1}})},
            {{"shape", std::vector<int64_t>{-1, kWords * 4}}});
    const ValueId chosen = add("Multinomial", "chosen", {v}, {{"sample_size", int64_t{3}}});
    const ValueId mean = add("ReduceMean", "chosen_mean",
                             {add("Cast", "chosen_number", {chosen}, {{"to", DType::kF32}})},
                             {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
    const ValueId small = g.AddConstant("small", ConstTensor::Floats({}, std::vector<float>{0.1f}));
    v = add("Add", "with_chosen", {v, add("Mul", "chosen_part", {mean, small})});
  }
  g.outputs = {add("Gemm", "dense", {v, weights("w", {kWords * 4, kClasses})})};
  return module;
}

Batch WordsOf(uint32_t seed, int64_t samples, int rank, int ranks) {
  const auto [first_shard, last_shard] = ShardsOfRank(rank, ranks);
  const int64_t first = FirstSampleOfShard(samples, first_shard),
                last = FirstSampleOfShard(samples, last_shard);
  Batch batch;
  batch.samples = last - first, batch.global_samples = samples;
  std::vector<int64_t> words, labels;
  for (int64_t i = first; i < last; ++i) {
    // Some words are in many samples.
    for (int64_t w = 0; w < kWords; ++w) words.push_back((i * (w + 3) + seed) * 7 % 30);
    labels.push_back((i * 5 + seed) % kClasses);
  }
  batch.tensors = {ConstTensor::Of<int64_t>(DType::kI64, {batch.samples, kWords}, words),
                   ConstTensor::Int64s(labels)};
  return batch;
}

TrainOne TrainingWords(bool draws, BatchSums sums) {
  return [=](Communicator* comm, int rank, int ranks) {
    auto trainer = MakeTrainer({}, sums, comm, WordNet(draws), {16, kWords});
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    if (!trainer.ok()) return TrainedState();
    TrainedState steps;
    for (uint32_t i = 0; i < std::size(kBatches); ++i) {
      auto step = (*trainer)->Step(WordsOf(i, kBatches[i], rank, ranks));
      EXPECT_TRUE(step.ok()) << step.status().message();
      if (!step.ok()) return TrainedState();
      steps.losses.push_back(step->loss);
      steps.correct.push_back(step->correct);
    }
    TrainedState result = StateOf(**trainer);
    result.losses = steps.losses, result.correct = steps.correct;
    return result;
  };
}

void ExpectClose(const TrainedState& a, const TrainedState& b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i)
    EXPECT_NEAR(a.losses[i], b.losses[i], 1e-4 * std::abs(a.losses[i])) << i;
  for (size_t i = 0; i < a.state.size(); ++i) {
    if (a.state[i].dtype != DType::kF32) continue;
    const auto x = a.state[i].As<float>(), y = b.state[i].As<float>();
    for (size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(x[k], y[k], 1e-4) << i << " " << k;
  }
}

TEST(BatchSums, TablesOfEmbeddingsHaveTheSameBitsForAnyNumberOfRanks) {
  ExpectSameBitsForAnyRanks(TrainingWords(/*draws=*/false, BatchSums::kFixed));
  const TrainedState plain = TrainingWords(false, BatchSums::kAny)(nullptr, 0, 1);
  ExpectClose(TrainingWords(false, BatchSums::kFixed)(nullptr, 0, 1), plain);
  for (const TrainedState& result : OnRanks(3, TrainingWords(false, BatchSums::kAny)))
    ExpectClose(result, plain);
}

// A model whose Dropout has no stream yet, as it does not draw in inference.
TEST(BatchSums, TheGradientOfDropoutDropsTheSameElements) {
  const auto training = MakeTrainingModule(WordNet(/*draws=*/true), {});
  ASSERT_TRUE(training.ok()) << training.status().message();
  std::map<int64_t, int> nodes;  // by stream
  for (const Node& node : training->graphs[training->entries[0]].nodes) {
    if (node.op == "Dropout") ++nodes[std::get<int64_t>(*node.attrs.Find("stream"))];
  }
  ASSERT_EQ(nodes.size(), 3u);
  for (const auto& [stream, count] : nodes) EXPECT_EQ(count, 2) << stream;
}

// The undivided step draws what the ranks draw together.
TEST(BatchSums, RandomOpsDrawTheSameNumbersForAnyNumberOfRanks) {
  ExpectSameBitsForAnyRanks(TrainingWords(/*draws=*/true, BatchSums::kFixed));
  const TrainedState plain = TrainingWords(true, BatchSums::kAny)(nullptr, 0, 1);
  for (const BatchSums sums : {BatchSums::kFixed, BatchSums::kAny}) {
    for (const TrainedState& result : OnRanks(3, TrainingWords(true, sums)))
      ExpectClose(result, plain);
  }
}

// A step with sums by shards is the ordinary step, apart from rounding.
TEST(BatchSums, DividedStepsFollowTheUndivided) {
  const auto plain = Training({}, BatchSums::kAny)(nullptr, 0, 1);
  for (const BatchSums sums : {BatchSums::kFixed, BatchSums::kAny}) {
    for (const TrainedState& result : OnRanks(4, Training({}, sums))) {
      ASSERT_EQ(result.losses.size(), plain.losses.size());
      for (size_t i = 0; i < plain.losses.size(); ++i)
        EXPECT_NEAR(result.losses[i], plain.losses[i], 1e-4 * std::abs(plain.losses[i])) << i;
      EXPECT_EQ(result.correct, plain.correct);
      for (size_t i = 0; i < plain.state.size(); ++i) {
        if (plain.state[i].dtype != DType::kF32) continue;
        const auto a = plain.state[i].As<float>(), b = result.state[i].As<float>();
        for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-4) << i << " " << k;
      }
    }
  }
}

// Micro-batches, and a checkpoint that another number of ranks continues from.
TEST(BatchSums, ACheckpointContinuesOnAnotherNumberOfRanks) {
  TrainingSpec spec;
  spec.accumulation = 2;
  Checkpoint middle;
  const auto steps = [&](int begin, int end) {
    return [&, begin, end](Communicator* comm, int rank, int ranks) {
      auto trainer = MakeTrainer(spec, BatchSums::kFixed, comm);
      EXPECT_TRUE(trainer.ok()) << trainer.status().message();
      if (!trainer.ok()) return TrainedState();
      if (begin > 0 && rank == 0) {
        EXPECT_TRUE((*trainer)->Restore(middle).ok());
      }
      EXPECT_TRUE((*trainer)->TakeOverFromFirstRank().ok());
      for (int i = begin; i < end; ++i) {
        const auto step =
            (*trainer)->Step(PartOf(static_cast<uint32_t>(i), kBatches[i], rank, ranks));
        EXPECT_TRUE(step.ok()) << step.status().message();
      }
      if (begin == 0 && end < 6 && rank == 0) middle = *(*trainer)->MakeCheckpoint();
      return StateOf(**trainer);
    };
  };
  const TrainedState whole = steps(0, 6)(nullptr, 0, 1);
  (void)OnRanks(2, steps(0, 3));
  EXPECT_EQ(middle.micro_batches, 1);
  for (const TrainedState& result : OnRanks(4, steps(3, 6))) {
    ASSERT_EQ(result.state.size(), whole.state.size());
    ExpectSameBits(result, whole);
  }
}

TEST(BatchSums, AnotherModelOnARankIsNamed) {
  std::vector<std::string> messages(4);
  (void)OnRanks(4, [&](Communicator* comm, int rank, int) {
    TrainingSpec spec;
    if (rank == 2) spec.optimizer.kind = OptimizerKind::kAdam;
    auto trainer = MakeTrainer(spec, BatchSums::kFixed, comm);
    EXPECT_FALSE(trainer.ok());
    messages[static_cast<size_t>(rank)] = trainer.status().message();
    return TrainedState();
  });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("rank 2 of group"), std::string::npos) << message;
}

// A sum over the batch inside the model, which no rank has the samples for.
TEST(BatchSums, AModelThatMixesSamplesIsRefused) {
  Module module = NormedNet();
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId sums = Require(b.Add(
      "CumSum", "mixer",
      {g.outputs[0],
       g.AddConstant("axis", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{0}))}));
  g.outputs = {sums};
  const auto trainer = MakeTrainer({}, BatchSums::kFixed, nullptr, std::move(module));
  ASSERT_FALSE(trainer.ok());
  EXPECT_NE(trainer.status().message().find("mixer"), std::string::npos)
      << trainer.status().message();
}

}  // namespace
}  // namespace msrt
