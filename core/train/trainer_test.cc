#include "core/train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/train/parameters.h"
#include "core/train/training_module.h"
#include "ops/builder.h"
#include "ops/validate.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

using testing::TestEnvironment;

std::vector<float> Random(size_t count, uint32_t seed, float scale) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(count);
  for (float& v : values) v = uniform(random);
  return values;
}

ValueId Must(Result<ValueId> v) {
  EXPECT_TRUE(v.ok()) << v.status().message();
  return v.ok() ? *v : ValueId{0};
}

// x [batch, 6] -> dense 5, Relu, dense 3, Softmax.
Module Perceptron(const char* name = "perceptron") {
  Module module;
  module.name = name;
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  Graph& g = module.graphs[0];
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {module.SymbolFor("batch"), 6}));
  GraphBuilder b(&g);
  const ValueId w1 = g.AddConstant("w1", ConstTensor::Floats({6, 5}, Random(30, 1, 0.7f))),
                b1 = g.AddConstant("b1", ConstTensor::Floats({5}, Random(5, 2, 0.1f))),
                w2 = g.AddConstant("w2", ConstTensor::Floats({5, 3}, Random(15, 3, 0.7f))),
                b2 = g.AddConstant("b2", ConstTensor::Floats({3}, Random(3, 4, 0.1f)));
  const ValueId h = Must(
      b.Add("Relu", "h", {Must(b.Add("Add", "a1", {Must(b.Add("MatMul", "m1", {x, w1})), b1}))}));
  const ValueId scores = Must(b.Add("Add", "a2", {Must(b.Add("MatMul", "m2", {h, w2})), b2}));
  g.outputs = {Must(b.Add("Softmax", "probabilities", {scores}))};
  return module;
}

Batch BatchOf(uint32_t seed, int64_t samples = 4) {
  Batch batch;
  const auto count = static_cast<size_t>(samples);
  batch.tensors.push_back(ConstTensor::Floats({samples, 6}, Random(count * 6, 100 + seed, 1)));
  std::vector<int64_t> labels;
  for (size_t i = 0; i < count; ++i) labels.push_back(static_cast<int64_t>((i * 7 + seed) % 3));
  batch.tensors.push_back(ConstTensor::Int64s(labels));
  batch.samples = batch.global_samples = samples;
  return batch;
}

std::unique_ptr<Trainer> MakeTrainer(const TrainingSpec& spec, Module model = Perceptron(),
                                     double rate = 0.1) {
  auto module = MakeTrainingModule(std::move(model), spec);
  EXPECT_TRUE(module.ok()) << module.status().message();
  if (!module.ok()) return nullptr;
  TrainerOptions options;
  options.schedule.rate = rate;
  auto trainer = Trainer::Create(TestEnvironment(), *std::move(module), options);
  EXPECT_TRUE(trainer.ok()) << trainer.status().message();
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

StepResult MustStep(Trainer* trainer, const Batch& batch) {
  auto result = trainer->Step(batch);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : StepResult();
}

std::vector<float> StateOf(const Trainer& trainer, const std::string& slot) {
  auto value = trainer.State(slot);
  EXPECT_TRUE(value.ok()) << value.status().message();
  if (!value.ok()) return {};
  return {value->As<float>().begin(), value->As<float>().end()};
}

void ExpectSameBits(const Trainer& a, const Trainer& b) {
  for (const StateSlot& slot : a.model().module.states) {
    auto x = a.State(slot.name), y = b.State(slot.name);
    ASSERT_TRUE(x.ok() && y.ok()) << slot.name;
    EXPECT_TRUE(std::equal(x->bytes.begin(), x->bytes.end(), y->bytes.begin(), y->bytes.end()))
        << slot.name;
  }
}

TEST(Parameters, AreTheWeightsOfTheModel) {
  Module module = Perceptron();
  ASSERT_TRUE(Validate(&module).ok());
  TrainingSpec spec;
  spec.optimizer.weight_decay = 0.5;
  spec.groups = {{.pattern = "w2", .rate_factor = 0.1, .weight_decay = 0.25}};
  auto found = FindParameters(module.main(), spec);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->size(), 4u);
  EXPECT_EQ((*found)[0].name, "w1");
  EXPECT_EQ((*found)[0].weight_decay, 0.5);
  EXPECT_EQ((*found)[1].name, "b1");
  EXPECT_EQ((*found)[1].weight_decay, 0);
  EXPECT_EQ((*found)[2].rate_factor, 0.1);
  EXPECT_EQ((*found)[2].weight_decay, 0.25);
  spec.frozen = {"?1", "b*"};
  found = FindParameters(module.main(), spec);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].name, "w2");
  spec.frozen = {"w3"};
  auto missing = FindParameters(module.main(), spec);
  EXPECT_NE(missing.status().message().find("'w3'"), std::string::npos);
  spec.frozen = {"*"};
  EXPECT_FALSE(FindParameters(module.main(), spec).ok());
}

// Constants that normalize the input and tables of positions are no parameters.
TEST(Parameters, AreNeitherPreprocessingNorTables) {
  Module module;
  module.name = "tables";
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  Graph& g = module.graphs[0];
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {module.SymbolFor("batch"), 4, 6}));
  GraphBuilder b(&g);
  const auto constant = [&](const char* name, const Dims& dims) {
    return g.AddConstant(
        name, ConstTensor::Floats(dims, Random(static_cast<size_t>(dims.elements()), 7, 1)));
  };
  const auto add = [&](const char* op, ValueId a, ValueId c) {
    return Must(b.Add(op, "", {a, c}));
  };
  ValueId v = add("Div", add("Sub", x, constant("mean", {6})), constant("deviation", {6}));
  v = add("Add", add("Mul", v, constant("scale", {1, 6})), constant("shift", {6}));
  v = add("Add", add("MatMul", v, constant("w", {6, 6})), constant("bias", {6}));
  v = add("Mul", add("Add", v, constant("positions", {4, 6})), constant("gain", {6}));
  v = add("Mul", v, constant("cosines", {4, 6}));
  g.outputs = {v};
  ASSERT_TRUE(Validate(&module).ok());
  auto found = FindParameters(module.main(), {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  std::vector<std::string> names;
  for (const Parameter& p : *found) names.push_back(p.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"bias", "gain", "positions", "w"}));

  // Without layers, products and sums of elements are the model.
  Module line;
  line.graphs.emplace_back().name = "main";
  line.entries = {0};
  Graph& l = line.graphs[0];
  const ValueId y = l.AddInput("y", Type::Tensor(DType::kF32, {line.SymbolFor("batch"), 6}));
  GraphBuilder c(&l);
  const ValueId slope = l.AddConstant("slope", ConstTensor::Floats({6}, Random(6, 1, 1))),
                offset = l.AddConstant("offset", ConstTensor::Floats({6}, Random(6, 2, 1)));
  l.outputs = {Must(c.Add("Add", "", {Must(c.Add("Mul", "", {y, slope})), offset}))};
  ASSERT_TRUE(Validate(&line).ok());
  found = FindParameters(line.main(), {});
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->size(), 2u);
}

TEST(Parameters, PatternsMatchWholeNames) {
  EXPECT_TRUE(MatchesPattern("layer1.0.weight", "layer1.*"));
  EXPECT_TRUE(MatchesPattern("layer1.0.weight", "*.weight"));
  EXPECT_TRUE(MatchesPattern("abcabd", "*ab?"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_FALSE(MatchesPattern("layer10.weight", "layer1.*"));
  EXPECT_FALSE(MatchesPattern("weight", "weigh"));
  EXPECT_FALSE(MatchesPattern("weight", "?weight"));
}

TEST(Trainer, LossFallsWithEveryOptimizer) {
  for (const char* name :
       {"sgd", "momentum", "nesterov", "rmsprop", "adagrad", "adam", "adamw", "lamb", "lars"}) {
    TrainingSpec spec;
    auto optimizer = ParseOptimizer(name);
    ASSERT_TRUE(optimizer.ok());
    spec.optimizer = *optimizer;
    spec.optimizer.trust = 0.1;
    auto trainer = MakeTrainer(spec, Perceptron(), 0.05);
    ASSERT_NE(trainer, nullptr);
    const double first = MustStep(trainer.get(), BatchOf(1)).loss;
    double last = first;
    for (int i = 0; i < 30; ++i) last = MustStep(trainer.get(), BatchOf(1)).loss;
    EXPECT_LT(last, 0.9 * first) << name;
    EXPECT_EQ(trainer->steps(), 31);
  }
}

// Every tensor that a step writes is made in the memory of its slot, so that an update costs one
// pass over the parameters. Only the counter of updates may be copied.
TEST(Trainer, UpdatesStateInPlace) {
  TrainingSpec spec;
  spec.optimizer.kind = OptimizerKind::kAdamW;
  spec.average_decay = 0.9;
  auto trainer = MakeTrainer(spec);
  ASSERT_NE(trainer, nullptr);
  const Program& program = *trainer->model().entries[0]->current()->program;
  size_t writes = 0;
  for (const Step& step : program.steps) writes += step.kind == StepKind::kStateWrite;
  EXPECT_EQ(writes, 4u * 4 + 1);
  EXPECT_GE(program.state_updates.size(), writes - 1);
}

TEST(Trainer, ResumesWithTheSameBits) {
  TrainingSpec spec;
  spec.optimizer.kind = OptimizerKind::kAdamW;
  spec.average_decay = 0.9;
  spec.accumulation = 2;
  spec.loss_scale = {.initial = 64, .dynamic = true, .growth_interval = 3};
  auto whole = MakeTrainer(spec), part = MakeTrainer(spec), resumed = MakeTrainer(spec);
  ASSERT_TRUE(whole && part && resumed);
  for (uint32_t i = 0; i < 11; ++i) MustStep(whole.get(), BatchOf(i));
  for (uint32_t i = 0; i < 5; ++i) MustStep(part.get(), BatchOf(i));
  const std::string path = StrCat(::testing::TempDir(), "msrt_resume_", getpid(), ".ckpt");
  auto saved = part->MakeCheckpoint();
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  ASSERT_TRUE(WriteCheckpoint(*saved, path, DefaultIo()).ok());
  auto loaded = ReadCheckpoint(path, DefaultIo());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  remove(path.c_str());
  const Status restored = resumed->Restore(*loaded);
  ASSERT_TRUE(restored.ok()) << restored.message();
  EXPECT_EQ(resumed->steps(), part->steps());
  for (uint32_t i = 5; i < 11; ++i) MustStep(resumed.get(), BatchOf(i));
  EXPECT_EQ(resumed->steps(), whole->steps());
  ExpectSameBits(*whole, *resumed);
}

TEST(Trainer, RefusesACheckpointOfAnotherModel) {
  auto one = MakeTrainer({}), other = MakeTrainer({}, Perceptron("lenet"));
  TrainingSpec adam;
  adam.optimizer.kind = OptimizerKind::kAdam;
  auto with_adam = MakeTrainer(adam);
  ASSERT_TRUE(one && other && with_adam);
  auto saved = one->MakeCheckpoint();
  ASSERT_TRUE(saved.ok());
  const std::string by_name = other->Restore(*saved).message();
  EXPECT_NE(by_name.find("'perceptron'"), std::string::npos) << by_name;
  EXPECT_NE(by_name.find("'lenet'"), std::string::npos) << by_name;
  const std::string by_slot = with_adam->Restore(*saved).message();
  EXPECT_NE(by_slot.find("'w1.momentum'"), std::string::npos) << by_slot;
  saved->tensors.pop_back();
  const std::string missing = one->Restore(*saved).message();
  EXPECT_NE(missing.find("has no '"), std::string::npos) << missing;
}

TEST(Trainer, MicroBatchesMakeTheUpdateOfTheWholeBatch) {
  TrainingSpec spec, micro;
  micro.accumulation = 2;
  auto whole = MakeTrainer(spec), halves = MakeTrainer(micro);
  ASSERT_TRUE(whole && halves);
  for (uint32_t i = 0; i < 4; ++i) {
    const Batch batch = BatchOf(i, 8);
    MustStep(whole.get(), batch);
    for (int half = 0; half < 2; ++half) {
      Batch part;
      part.samples = part.global_samples = 4;
      const auto x = batch.tensors[0].As<float>();
      const auto y = batch.tensors[1].As<int64_t>();
      part.tensors = {ConstTensor::Floats({4, 6}, x.subspan(half == 0 ? 0 : 24, 24)),
                      ConstTensor::Int64s(y.subspan(half == 0 ? 0 : 4, 4))};
      EXPECT_EQ(MustStep(halves.get(), part).updated, half == 1);
    }
  }
  for (const char* slot : {"w1", "b1", "w2", "b2"}) {
    const std::vector<float> a = StateOf(*whole, slot), b = StateOf(*halves, slot);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << slot << " " << i;
  }
}

TEST(Trainer, AFixedLossScaleOfTwoChangesNoBit) {
  TrainingSpec plain, scaled;
  scaled.loss_scale.initial = 1024;
  auto a = MakeTrainer(plain), b = MakeTrainer(scaled);
  ASSERT_TRUE(a && b);
  for (uint32_t i = 0; i < 5; ++i) {
    const double loss = MustStep(a.get(), BatchOf(i)).loss;
    EXPECT_EQ(loss, MustStep(b.get(), BatchOf(i)).loss);
  }
  ExpectSameBits(*a, *b);
}

TEST(Trainer, ADynamicLossScaleSkipsStepsThatOverflow) {
  TrainingSpec spec;
  // The gradients of w2 are up to some tenths of this.
  spec.loss_scale = {.initial = 3e38, .dynamic = true, .growth_interval = 2};
  auto trainer = MakeTrainer(spec);
  ASSERT_NE(trainer, nullptr);
  Batch large = BatchOf(1);
  std::vector<float> x = Random(24, 5, 100);
  large.tensors[0] = ConstTensor::Floats({4, 6}, x);
  const std::vector<float> before = StateOf(*trainer, "w1");
  StepResult result = MustStep(trainer.get(), large);
  EXPECT_TRUE(result.skipped);
  EXPECT_FALSE(result.updated);
  EXPECT_EQ(trainer->steps(), 0);
  EXPECT_EQ(StateOf(*trainer, "w1"), before);
  EXPECT_EQ(StateOf(*trainer, std::string(kLossScaleSlot))[0], 1.5e38f);
  int skipped = 1;
  while ((result = MustStep(trainer.get(), large)).skipped && skipped < 200) ++skipped;
  EXPECT_FALSE(result.skipped);
  EXPECT_NE(StateOf(*trainer, "w1"), before);
  const float scale = StateOf(*trainer, std::string(kLossScaleSlot))[0];
  MustStep(trainer.get(), BatchOf(2));
  EXPECT_EQ(StateOf(*trainer, std::string(kLossScaleSlot))[0], 2 * scale);
}

// No loss scale helps where the loss itself is not finite.
TEST(Trainer, ADynamicLossScaleEndsWithALastingNan) {
  TrainingSpec spec;
  spec.loss_scale = {.initial = 65536, .dynamic = true};
  auto trainer = MakeTrainer(spec);
  ASSERT_NE(trainer, nullptr);
  Batch batch = BatchOf(1);
  batch.tensors[0] = ConstTensor::Floats({4, 6}, std::vector<float>(24, NAN));
  Status status;
  int steps = 0;
  for (; status.ok() && steps < 1000; ++steps) status = trainer->Step(batch).status();
  EXPECT_LT(steps, 60);
  EXPECT_NE(status.message().find("nan and the gradients are not finite"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("loss scale"), std::string::npos) << status.message();
  EXPECT_GT(StateOf(*trainer, std::string(kLossScaleSlot))[0], 1e-6f);
}

TEST(Trainer, TheNormOfGradientsIsLimited) {
  TrainingSpec spec;
  spec.optimizer.kind = OptimizerKind::kSgd;
  spec.clip_norm = 0.01;
  auto trainer = MakeTrainer(spec, Perceptron(), 1.0);
  ASSERT_NE(trainer, nullptr);
  double moved = 0;
  std::vector<std::vector<float>> before;
  const std::vector<std::string> slots{"w1", "b1", "w2", "b2"};
  for (const std::string& slot : slots) before.push_back(StateOf(*trainer, slot));
  EXPECT_GT(MustStep(trainer.get(), BatchOf(1)).gradient_norm, 0.1);
  for (size_t s = 0; s < slots.size(); ++s) {
    const std::vector<float> after = StateOf(*trainer, slots[s]);
    for (size_t i = 0; i < after.size(); ++i)
      moved += std::pow(static_cast<double>(after[i] - before[s][i]), 2);
  }
  EXPECT_NEAR(std::sqrt(moved), 0.01, 1e-5);
}

TEST(Trainer, ElementsOfGradientsAreLimited) {
  TrainingSpec spec;
  spec.optimizer.kind = OptimizerKind::kSgd;
  spec.clip_value = 0.001;
  auto trainer = MakeTrainer(spec, Perceptron(), 1.0);
  ASSERT_NE(trainer, nullptr);
  const std::vector<float> before = StateOf(*trainer, "w2");
  MustStep(trainer.get(), BatchOf(1));
  const std::vector<float> after = StateOf(*trainer, "w2");
  float largest = 0;
  for (size_t i = 0; i < after.size(); ++i)
    largest = std::max(largest, std::abs(after[i] - before[i]));
  EXPECT_NEAR(largest, 0.001f, 1e-6f);
}

TEST(Trainer, FrozenParametersStayConstants) {
  TrainingSpec spec;
  spec.frozen = {"*1"};
  auto trainer = MakeTrainer(spec);
  ASSERT_NE(trainer, nullptr);
  EXPECT_FALSE(trainer->State("w1").ok());
  EXPECT_TRUE(trainer->State("w2").ok());
  MustStep(trainer.get(), BatchOf(1));
}

TEST(Trainer, EvaluationUsesTheMovingAverage) {
  TrainingSpec spec;
  spec.average_decay = 0.75;
  auto trainer = MakeTrainer(spec);
  ASSERT_NE(trainer, nullptr);
  const std::vector<float> first = StateOf(*trainer, "w2");
  MustStep(trainer.get(), BatchOf(1));
  const std::vector<float> now = StateOf(*trainer, "w2"), average = StateOf(*trainer, "w2.ema");
  for (size_t i = 0; i < now.size(); ++i)
    EXPECT_NEAR(average[i], 0.75f * first[i] + 0.25f * now[i], 1e-6f);
  auto exported = trainer->Export();
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  for (uint32_t v = 0; v < exported->main().value_count(); ++v) {
    const Value& value = exported->main().value(ValueId{v});
    if (value.name != "w2") continue;
    ASSERT_NE(value.constant, nullptr);
    EXPECT_EQ(value.constant->As<float>()[0], average[0]);
  }
}

TEST(Trainer, TheExportedModelComputesTheSame) {
  auto trainer = MakeTrainer({});
  ASSERT_NE(trainer, nullptr);
  for (uint32_t i = 0; i < 3; ++i) MustStep(trainer.get(), BatchOf(i));
  const Batch batch = BatchOf(9);
  auto predicted = trainer->Predict({batch.tensors[0]});
  ASSERT_TRUE(predicted.ok()) << predicted.status().message();
  auto exported = trainer->Export();
  ASSERT_TRUE(exported.ok()) << exported.status().message();
  EXPECT_EQ(exported->name, "perceptron");
  EXPECT_TRUE(exported->states.empty());
  EXPECT_EQ(exported->entries.size(), 1u);
  auto out = testing::RunModule(*exported, {batch.tensors[0]});
  ASSERT_TRUE(out.ok()) << out.status().message();
  const TensorView& expected = (*predicted)[0];
  ASSERT_EQ((*out)[0].dims, expected.dims);
  for (int64_t i = 0; i < expected.elements(); ++i)
    EXPECT_NEAR((*out)[0].As<float>()[static_cast<size_t>(i)], expected.As<float>()[i], 1e-6f);
  // It can be trained again, from where it is.
  auto again = MakeTrainer({}, *exported);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(StateOf(*again, "w1"), StateOf(*trainer, "w1"));
}

TEST(Trainer, StopsWhenTheLossIsNotFinite) {
  auto trainer = MakeTrainer({});
  ASSERT_NE(trainer, nullptr);
  Batch batch = BatchOf(1);
  batch.tensors[0] = ConstTensor::Floats({4, 6}, std::vector<float>(24, NAN));
  auto result = trainer->Step(batch);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("the loss is"), std::string::npos);
}

TEST(Trainer, RefusesWhatItCannotTrain) {
  TrainingSpec spec;
  spec.output = 1;
  EXPECT_FALSE(MakeTrainingModule(Perceptron(), spec).ok());
  spec = {};
  spec.accumulation = 0;
  EXPECT_FALSE(MakeTrainingModule(Perceptron(), spec).ok());
  auto once = MakeTrainingModule(Perceptron(), {});
  ASSERT_TRUE(once.ok());
  EXPECT_FALSE(MakeTrainingModule(*once, {}).ok());
  EXPECT_FALSE(Trainer::Create(TestEnvironment(), Perceptron(), {}).ok());
  auto trainer = MakeTrainer({});
  ASSERT_NE(trainer, nullptr);
  Batch batch = BatchOf(1);
  batch.tensors.pop_back();
  EXPECT_FALSE(trainer->Step(batch).ok());
}

// Batches of a list.
class ListedBatches final : public Dataset {
 public:
  explicit ListedBatches(std::vector<Batch> batches) : batches_(std::move(batches)) {}
  std::vector<Type> types() const override { return {}; }
  int64_t samples() const override { return 0; }
  int64_t batches_per_epoch() const override { return static_cast<int64_t>(batches_.size()); }
  Result<std::unique_ptr<BatchReader>> Batches(int64_t, int64_t first) const override {
    class Reader final : public BatchReader {
     public:
      Reader(const std::vector<Batch>& batches, size_t next) : batches_(batches), next_(next) {}
      Result<std::optional<Batch>> Next() override {
        if (next_ == batches_.size()) return std::optional<Batch>();
        return std::optional<Batch>(batches_[next_++]);
      }

     private:
      const std::vector<Batch>& batches_;
      size_t next_;
    };
    return std::unique_ptr<BatchReader>(
        std::make_unique<Reader>(batches_, static_cast<size_t>(first)));
  }

 private:
  std::vector<Batch> batches_;
};

TEST(Trainer, EvaluationWeighsBatchesByTheirSamples) {
  auto trainer = MakeTrainer({});
  ASSERT_NE(trainer, nullptr);
  const Batch whole = BatchOf(3, 6);
  Batch first, second;
  first.samples = 4;
  second.samples = 2;
  const auto x = whole.tensors[0].As<float>();
  const auto y = whole.tensors[1].As<int64_t>();
  first.tensors = {ConstTensor::Floats({4, 6}, x.first(24)), ConstTensor::Int64s(y.first(4))};
  second.tensors = {ConstTensor::Floats({2, 6}, x.subspan(24)), ConstTensor::Int64s(y.subspan(4))};
  size_t visited = 0;
  auto split = trainer->Evaluate(ListedBatches({first, second}),
                                 [&](const Batch&, const std::vector<TensorView>& outputs) {
                                   visited += outputs.size();
                                   return OkStatus();
                                 });
  auto at_once = trainer->Evaluate(ListedBatches({whole}));
  ASSERT_TRUE(split.ok()) << split.status().message();
  ASSERT_TRUE(at_once.ok()) << at_once.status().message();
  EXPECT_EQ(visited, 2u);
  EXPECT_EQ(split->samples, 6);
  EXPECT_EQ(split->correct, at_once->correct);
  EXPECT_NEAR(split->loss, at_once->loss, 1e-6);
}

}  // namespace
}  // namespace msrt
