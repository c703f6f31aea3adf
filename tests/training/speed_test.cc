// What makes training smaller or faster: recomputation to a limit of memory, mixed precision and
// the levels of boost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "core/bind/binding.h"
#include "core/train/boost.h"
#include "core/train/trainer.h"
#include "tests/conformance/pipeline.h"
#include "tests/training/training_testing.h"

namespace msrt::testing {
namespace {

const Dims kImages{8, 3, 64, 64};
constexpr int64_t kClasses = 10;

// A ResNet-18 of 8 channels in its first stage, trained by some settings.
struct TrainedNet {
  TrainingSpec spec;
  TrainerOptions options;
  double rate = 0.01;
  SpecReport report;
  std::vector<std::pair<std::string, std::string>> changes;
  std::unique_ptr<Trainer> trainer;

  TrainedNet() { options.compile.typical = {{"image", kImages}, {"target", {kImages[0]}}}; }

  TrainingSettings settings() { return {&spec, &options.compile, &rate}; }
  void Limit(std::string_view limit) {
    spec.activations = *ParseActivationLimit(limit);
    spec.activations.typical = options.compile.typical;
    spec.activations.evaluator = TestEnvironment()->evaluator;
  }
  Status TryStart(Boost boost = Boost::kO1) {
    MSRT_RETURN_IF_ERROR(ApplyBoost(boost, settings()));
    Module model =
        ZooModule("resnet18", DType::kF32, {.image = 64, .width = 8, .classes = kClasses});
    MSRT_ASSIGN_OR_RETURN(Module training,
                          MakeTrainingModule(std::move(model), spec, nullptr, &report));
    changes = ListChanges(boost, settings(), report);
    options.schedule.rate = rate;
    MSRT_ASSIGN_OR_RETURN(trainer,
                          Trainer::Create(TestEnvironment(), std::move(training), options));
    return OkStatus();
  }
  void Start(Boost boost = Boost::kO1) {
    const Status status = TryStart(boost);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  std::vector<double> Losses(int steps, int first = 0) {
    std::vector<double> losses;
    for (int i = first; i < first + steps; ++i) {
      auto result = trainer->Step(MadeBatch(50 + i % 5, DType::kF32, kImages, kClasses));
      if (!result.ok()) return ADD_FAILURE() << result.status().message(), losses;
      losses.push_back(result->loss);
    }
    return losses;
  }
  const Program& program() const { return *trainer->model().entries[0]->current()->program; }
  // The memory of all tensors of a step.
  size_t ArenaBytes() const {
    const CompiledModel& model = trainer->model();
    BindRequest request;
    request.inputs = {Type::Tensor(DType::kF32, kImages), Type::Tensor(DType::kI64, {kImages[0]}),
                      Type::Tensor(DType::kF32, {})};
    for (uint32_t slot : program().state_slots)
      request.states.push_back(model.module.states[slot].type);
    auto binding = BindingFor(model, *model.entries[0]->current(), request);
    if (!binding.ok()) return ADD_FAILURE() << binding.status().message(), 0;
    return (*binding)->arena_bytes;
  }
  std::vector<float> State(const std::string& name) const {
    auto value = trainer->State(name);
    if (!value.ok()) return ADD_FAILURE() << value.status().message(), std::vector<float>();
    const auto floats = value->As<float>();
    return {floats.begin(), floats.end()};
  }
  std::vector<std::string> Parameters() const {
    std::vector<std::string> names;
    for (const StateSlot& slot : trainer->module().states) {
      if (slot.role == StateRole::kParameter) names.push_back(slot.name);
    }
    return names;
  }
  std::set<std::string> ChangeNames() const {
    std::set<std::string> names;
    for (const auto& [name, effect] : changes) names.insert(name);
    return names;
  }
};

// ---- recomputation ------------------------------------------------------------------------------

TEST(ActivationMemory, LimitsAreRead) {
  EXPECT_EQ(ParseActivationLimit("40%")->part, 0.4);
  EXPECT_EQ(ParseActivationLimit("2GiB")->bytes, 2147483648.0);
  EXPECT_EQ(ParseActivationLimit("1500MB")->bytes, 1.5e9);
  EXPECT_EQ(ParseActivationLimit("65536")->bytes, 65536);
  for (const char* text : {"", "0", "-1", "0%", "101%", "GiB", "2 GiB", "2XB", "nan", "40%%"})
    EXPECT_FALSE(ParseActivationLimit(text).ok()) << text;
}

TEST(ActivationMemory, StepsOfALimitHaveTheSameBitsInLessMemory) {
  // In exact mode the kernels do not depend on what is fused or free.
  TrainedNet all, limited;
  all.options.compile.place.exact = limited.options.compile.place.exact = true;
  all.Start();
  limited.Limit("40%");
  limited.Start();
  ASSERT_TRUE(all.trainer && limited.trainer);
  const ActivationMemory& memory = limited.report.activations;
  EXPECT_GT(memory.kept_bytes, 1e6);
  EXPECT_LE(memory.planned_bytes, 0.4 * memory.kept_bytes);
  EXPECT_GT(memory.recomputed, 0.2);
  EXPECT_LT(memory.recomputed, 1);
  EXPECT_EQ(all.Losses(5), limited.Losses(5));
  for (const std::string& name : all.Parameters())
    EXPECT_EQ(all.State(name), limited.State(name)) << name;
  const size_t arena = all.ArenaBytes(), less = limited.ArenaBytes();
  std::printf("arena %zu bytes, at 40 %% of the activation memory %zu\n", arena, less);
  EXPECT_LT(static_cast<double>(less), 0.75 * static_cast<double>(arena));
  EXPECT_EQ(limited.ChangeNames(), std::set<std::string>{"recomputation"});
}

TEST(ActivationMemory, AccumulatedStepsAreLimitedToo) {
  TrainedNet all, limited;
  all.spec.accumulation = limited.spec.accumulation = 2;
  all.options.compile.place.exact = limited.options.compile.place.exact = true;
  all.Start();
  limited.Limit("50%");
  limited.Start();
  ASSERT_TRUE(all.trainer && limited.trainer);
  EXPECT_EQ(all.Losses(4), limited.Losses(4));
}

TEST(ActivationMemory, ErrorsSayWhatToChange) {
  TrainedNet tiny;
  tiny.Limit("1kB");
  Status status = tiny.TryStart();
  EXPECT_EQ(status.code(), Code::kLimitExceeded);
  EXPECT_NE(status.message().find("they take at least"), std::string::npos) << status.message();
  TrainedNet open;
  open.options.compile.typical.clear();
  open.Limit("40%");
  status = open.TryStart();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("input 'image'"), std::string::npos) << status.message();
}

// ---- mixed precision ----------------------------------------------------------------------------

// Whether this machine multiplies in bf16.
bool HasReducedNodes(const Program& program) {
  return std::any_of(program.explanations.begin(), program.explanations.end(),
                     [](const NodeExplanation& e) { return e.reduced; });
}

TEST(MixedPrecision, FollowsF32InLessMemory) {
  TrainedNet single, mixed;
  single.Start();
  ASSERT_TRUE(ApplyPrecision(Precision::kMixed, mixed.settings()).ok());
  mixed.Start();
  ASSERT_TRUE(single.trainer && mixed.trainer);
  EXPECT_GT(mixed.report.reduced_values, 30u);
  const std::vector<double> expected = single.Losses(20), losses = mixed.Losses(20);
  ASSERT_EQ(losses.size(), expected.size());
  // bf16 has 8 bits. In the first steps a loss differs by a few of its roundings; later the runs
  // take different ways, as runs in f32 with other roundings do, and only their means agree.
  double mean = 0, expected_mean = 0;
  for (size_t step = 0; step < losses.size(); ++step) {
    if (step < 5) {
      EXPECT_NEAR(losses[step], expected[step], 0.04 * expected[0]) << step;
    }
    mean += losses[step] / static_cast<double>(losses.size());
    expected_mean += expected[step] / static_cast<double>(losses.size());
    std::printf("step %zu: f32 %.4f, mixed %.4f\n", step, expected[step], losses[step]);
  }
  EXPECT_NEAR(mean, expected_mean, 0.1 * expected[0]);
  EXPECT_LT(losses.back(), 0.3 * losses.front());
  const size_t arena = single.ArenaBytes(), less = mixed.ArenaBytes();
  std::printf("arena %zu bytes, mixed %zu; bf16 products: %s\n", arena, less,
              HasReducedNodes(mixed.program()) ? "yes" : "no");
  EXPECT_LT(static_cast<double>(less), 0.75 * static_cast<double>(arena));
  for (const StateSlot& slot : mixed.trainer->module().states)
    EXPECT_NE(slot.type.dtype, DType::kBF16) << slot.name;
}

TEST(MixedPrecision, WorksWithRecomputation) {
  TrainedNet mixed;
  mixed.Limit("50%");
  ASSERT_TRUE(ApplyPrecision(Precision::kMixed, mixed.settings()).ok());
  mixed.Start();
  ASSERT_TRUE(mixed.trainer);
  const std::vector<double> losses = mixed.Losses(20);
  EXPECT_LT(losses.back(), 0.3 * losses.front());
}

TEST(MixedPrecision, ExactArithmeticRefuses) {
  TrainedNet exact;
  exact.options.compile.place.exact = true;
  const Status status = ApplyPrecision(Precision::kMixed, exact.settings());
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("precision 'f32'"), std::string::npos) << status.message();
  TrainedNet any;
  TrainingSettings fixed = any.settings();
  fixed.fixed_sums = true;
  EXPECT_FALSE(ApplyPrecision(Precision::kMixed, fixed).ok());
}

// ---- boost --------------------------------------------------------------------------------------

TEST(Boost, NamesAreRead) {
  for (const Boost boost : {Boost::kOff, Boost::kO1, Boost::kO2, Boost::kO3})
    EXPECT_EQ(*ParseBoost(BoostName(boost)), boost);
  EXPECT_FALSE(ParseBoost("O4").ok());
  EXPECT_FALSE(ParseBoost("").ok());
}

TEST(Boost, OffRunsEachNodePlainly) {
  TrainedNet off, usual;
  off.Start(Boost::kOff);
  usual.Start();
  ASSERT_TRUE(off.trainer && usual.trainer);
  EXPECT_EQ(off.ChangeNames(), std::set<std::string>{"plain"});
  EXPECT_TRUE(usual.changes.empty());
  EXPECT_TRUE(off.trainer->model().passes.empty());
  for (const Node& node : off.program().graph->nodes) EXPECT_FALSE(node.op.starts_with("Fused"));
  for (const Step& step : off.program().steps) EXPECT_NE(step.kind, StepKind::kConvert);
  const std::vector<double> expected = usual.Losses(3), losses = off.Losses(3);
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-4);
}

TEST(Boost, O2IsMixedPrecision) {
  TrainedNet run;
  run.Start(Boost::kO2);
  EXPECT_EQ(run.ChangeNames(), (std::set<std::string>{"bf16 products", "bf16 activations"}));
}

TEST(Boost, O3ListsItsChanges) {
  TrainedNet run;
  run.options.schedule.total_steps = 9;
  run.Start(Boost::kO3);
  ASSERT_TRUE(run.trainer);
  EXPECT_EQ(run.ChangeNames(),
            (std::set<std::string>{"bf16 products", "bf16 activations", "centralized gradients",
                                   "accumulation", "freezing"}));
  EXPECT_EQ(run.rate, 0.02);
  const std::vector<double> losses = run.Losses(18);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(run.trainer->steps(), 9);
}

TEST(Boost, CentralizedGradientsKeepTheMeanOfEachFilter) {
  TrainedNet run;
  run.spec.optimizer.kind = OptimizerKind::kSgd;
  run.spec.centralized_gradients = true;
  run.Start();
  ASSERT_TRUE(run.trainer);
  EXPECT_EQ(run.report.centralized, 21u);  // 20 convolutions and the head
  const std::vector<std::string> names = run.Parameters();
  const std::string filter = names.front();
  const auto before = *run.trainer->State(filter);
  const std::vector<float> old_values = run.State(filter);
  run.Losses(1);
  const std::vector<float> values = run.State(filter);
  const auto outputs = static_cast<size_t>(before.dims[0]);
  const size_t width = values.size() / outputs;
  double largest = 0;
  for (size_t o = 0; o < outputs; ++o) {
    double sum = 0, size = 0;
    for (size_t i = o * width; i < (o + 1) * width; ++i) {
      sum += static_cast<double>(values[i]) - static_cast<double>(old_values[i]);
      size += std::abs(static_cast<double>(values[i]) - static_cast<double>(old_values[i]));
    }
    EXPECT_LE(std::abs(sum), 1e-4 * size) << "filter " << o;
    largest = std::max(largest, size);
  }
  EXPECT_GT(largest, 0);
}

TEST(Boost, FreezingKeepsTheFirstParametersAndResumesExactly) {
  const auto start = [](TrainedNet* run) {
    run->spec.freezing_stages = 2;
    run->spec.average_decay = 0.5;
    run->options.schedule.total_steps = 9;
    run->Start();
  };
  TrainedNet run, resumed;
  start(&run), start(&resumed);
  ASSERT_TRUE(run.trainer && resumed.trainer);
  ASSERT_EQ(run.report.frozen.size(), 2u);
  EXPECT_LT(run.report.frozen[0], run.report.frozen[1]);
  const std::vector<std::string> names = run.Parameters();
  run.Losses(3);
  EXPECT_EQ(run.trainer->freezing_stage(), 1);
  const auto checkpoint = run.trainer->MakeCheckpoint();
  ASSERT_TRUE(checkpoint.ok());
  const std::vector<float> first = run.State(names.front()), last = run.State(names.back());
  const std::vector<double> losses = run.Losses(6, 3);
  EXPECT_EQ(run.trainer->freezing_stage(), 2);
  EXPECT_EQ(run.State(names.front()), first);
  EXPECT_NE(run.State(names.back()), last);
  ASSERT_TRUE(resumed.trainer->Restore(*checkpoint).ok());
  EXPECT_EQ(resumed.Losses(6, 3), losses);
  for (const std::string& name : names) EXPECT_EQ(run.State(name), resumed.State(name)) << name;
  EXPECT_TRUE(run.trainer->Export().ok());
}

}  // namespace
}  // namespace msrt::testing
