// Whole networks on the emulated accelerator and the reference delegate: in random mixes with
// delays, with memory for half of the model, and with failures of every device operation. The
// result is always that of the reference delegate, bit for bit.
#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/small_graph.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {
namespace {

struct Network {
  const char* name;
  zoo::Options options;
  Dims input;
};

const Network kLeNet{"lenet", {}, {2, 1, 28, 28}};
const Network kNetworks[] = {
    kLeNet,
    {"resnet18", {.image = 32, .width = 8}, {1, 3, 32, 32}},
    {"bert", {.width = 32, .classes = 100, .layers = 2, .heads = 4}, {2, 9}},
};

Module Build(const Network& n) {
  auto module = zoo::Build(n.name, n.options);
  EXPECT_TRUE(module.ok()) << module.status().message();
  return *std::move(module);
}

std::vector<ConstTensor> InputsOf(const Module& module, const Network& n, uint32_t seed) {
  std::vector<ConstTensor> inputs;
  std::mt19937 random(seed);
  for (ValueId v : module.main().inputs) {
    if (module.main().value(v).type.dtype == DType::kF32) {
      inputs.push_back(RandomFloats(n.input, seed));
      continue;
    }
    std::vector<int64_t> values(static_cast<size_t>(n.input.elements()), 1);
    for (int64_t& x : values) x = inputs.empty() ? static_cast<int64_t>(random() % 100) : 1;
    inputs.push_back(ConstTensor::Of<int64_t>(DType::kI64, n.input, values));
  }
  return inputs;
}

// Number of steps of a program by device.
struct StepCounts {
  int accelerator = 0, chains = 0, reference = 0;
};
StepCounts StepCountsOf(const Session& session) {
  StepCounts counts;
  for (const Step& step : session.program().steps) {
    if (step.kind != StepKind::kKernel) continue;
    ++(step.delegate == "accelerator" ? counts.accelerator : counts.reference);
    counts.chains += step.nodes.size() > 1;
  }
  return counts;
}

std::vector<ConstTensor> Must(Result<std::vector<ConstTensor>> outputs) {
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? *std::move(outputs) : std::vector<ConstTensor>();
}

Result<std::unique_ptr<Session>> SessionOn(std::shared_ptr<Environment> env, const Module& module,
                                           const PlaceOptions& place = {},
                                           const Dims& typical = {}) {
  CompileOptions options;
  options.place = place;
  if (!typical.empty()) {
    for (ValueId v : module.main().inputs)
      options.typical.emplace_back(module.main().value(v).name, typical);
  }
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(std::move(env), module, options));
  return Session::Create(std::move(model), 0, {});
}

PlaceOptions ReferenceOnly() {
  PlaceOptions place;
  place.delegates = {"reference"};
  return place;
}

PlaceOptions Strict() {
  PlaceOptions place;
  place.strict = true;
  return place;
}

class AcceleratorNetworks : public ::testing::TestWithParam<size_t> {
 protected:
  const Network& network() const { return kNetworks[GetParam()]; }
  ~AcceleratorNetworks() override { EXPECT_EQ(NewMisuses(), ""); }
};

TEST_P(AcceleratorNetworks, AnyMixReturnsTheSameBits) {
  const Module module = Build(network());
  for (uint32_t seed = 0; seed < 4; ++seed) {
    auto env = AcceleratedEnvironment(StrCat("delay_us=20,seed=", seed, ",", kFastDevice));
    auto all = SessionOn(env, module);
    ASSERT_TRUE(all.ok()) << all.status().message();
    PlaceOptions mix = Strict();
    std::mt19937 random(seed);
    for (const Node& node : (*all)->graph().nodes) {
      if (random() % 3 != 0)
        mix.pins.push_back({node.name, "", random() % 2 == 0 ? "reference" : "accelerator", false});
    }
    auto mixed = SessionOn(env, module, mix);
    ASSERT_TRUE(mixed.ok()) << mixed.status().message();
    auto reference = SessionOn(env, module, ReferenceOnly());
    ASSERT_TRUE(reference.ok()) << reference.status().message();
    const StepCounts counts = StepCountsOf(**mixed);
    EXPECT_GT(counts.accelerator, 0);
    EXPECT_GT(counts.reference, 0);
    for (uint32_t run = 0; run < 2; ++run) {
      const auto inputs = InputsOf(module, network(), seed + run);
      const auto expected = Must(RunSession(**reference, inputs));
      ExpectSameBits(Must(RunSession(**all, inputs)), expected, "all");
      ExpectSameBits(Must(RunSession(**mixed, inputs)), expected, "mixed");
    }
  }
}

TEST_P(AcceleratorNetworks, DeviceMayHoldHalfOfTheModel) {
  const Module module = Build(network());
  size_t weights = 0;
  for (uint32_t v = 0; v < module.main().value_count(); ++v) {
    const auto& constant = module.main().value(ValueId(v)).constant;
    weights += constant == nullptr ? 0 : constant->bytes.size();
  }
  std::string log;
  auto env = AcceleratedEnvironment(StrCat("capacity=", weights / 2, ",", kFastDevice), &log);
  auto session = SessionOn(env, module, {}, network().input);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto inputs = InputsOf(module, network(), 1);
  const auto got = Must(RunSession(**session, inputs));
  ExpectSameBits(got, Must(RunModule(module, inputs, {"reference"})));
  // It fits as planned: nothing had to be placed again.
  EXPECT_EQ(log, "");
  const StepCounts counts = StepCountsOf(**session);
  EXPECT_GT(counts.accelerator, 0);
  EXPECT_GT(counts.reference, 0);
}

TEST_P(AcceleratorNetworks, FailedCompilationsKeepTheResults) {
  const Module module = Build(network());
  const auto inputs = InputsOf(module, network(), 1);
  const auto expected = Must(RunModule(module, inputs, {"reference"}));
  for (const double probability : {0.3, 1.0}) {
    std::string log;
    auto env =
        AcceleratedEnvironment(StrCat("compile_fails=", probability, ",", kFastDevice), &log);
    auto session = SessionOn(env, module);
    ASSERT_TRUE(session.ok()) << session.status().message();
    ExpectSameBits(Must(RunSession(**session, inputs)), expected);
    EXPECT_NE(log.find("failed to compile"), std::string::npos);
    EXPECT_EQ(StepCountsOf(**session).accelerator > 0, probability < 1);
    // Single failures cost only their candidates; a broken compiler soon costs the delegate.
    EXPECT_EQ(log.find("placing again without it") != std::string::npos, probability == 1) << log;
    EXPECT_TRUE(probability < 1 || std::count(log.begin(), log.end(), '\n') == 3) << log;
    EXPECT_EQ(SessionOn(env, module, Strict()).status().code(), Code::kDelegate);
  }
}

INSTANTIATE_TEST_SUITE_P(All, AcceleratorNetworks,
                         ::testing::Range(size_t{0}, std::size(kNetworks)),
                         [](const auto& row) { return std::string(kNetworks[row.param].name); });

class AcceleratorFails : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  AcceleratorFails() : module(Build(kLeNet)), inputs(InputsOf(module, kLeNet, 1)) {}
  ~AcceleratorFails() override { EXPECT_EQ(NewMisuses(), ""); }
  std::string OptionsFor(int at) const {
    return StrCat(std::get<0>(GetParam()), "=", at, ",fails_late=", std::get<1>(GetParam()) ? 1 : 0,
                  ",", kFastDevice);
  }
  const Module module;
  const std::vector<ConstTensor> inputs;
};

// For every n: the n-th operation fails, or every operation from it on, during loading or in either
// of two runs.
TEST_P(AcceleratorFails, ResultsAreRightAfterAnyFailure) {
  const auto expected = Must(RunModule(module, inputs, {"reference"}));
  int last_failure = -1;
  for (int at = 0; at <= last_failure + 5; ++at) {
    std::string log;
    auto env = AcceleratedEnvironment(OptionsFor(at), &log);
    auto session = SessionOn(env, module);
    ASSERT_TRUE(session.ok()) << "at " << at << ": " << session.status().message();
    for (int run = 0; run < 2; ++run)
      ExpectSameBits(Must(RunSession(**session, inputs)), expected, StrCat("at ", at));
    const bool failed = !log.empty();
    if (failed) last_failure = at;
    EXPECT_EQ(StepCountsOf(**session).accelerator == 0, failed) << "at " << at << ": " << log;
    // Another session does not use the failed device, without failing first.
    log.clear();
    auto clone = (*session)->Clone();
    ASSERT_TRUE(clone.ok());
    ExpectSameBits(Must(RunSession(**clone, inputs)), expected, StrCat("clone at ", at));
    EXPECT_TRUE(!failed || log.empty()) << "at " << at << ": " << log;
    ASSERT_FALSE(HasFailure()) << "at " << at << ": " << log;
  }
  EXPECT_GT(last_failure, 0);
}

// Failures while the host measures the cost of copies, and shortly after.
TEST(AcceleratorMeasured, ResultsAreRightAfterAnyFailure) {
  const Module module = Build(kLeNet);
  const auto inputs = InputsOf(module, kLeNet, 1);
  const auto expected = Must(RunModule(module, inputs, {"reference"}));
  for (const char* what : {"dies_after", "copy_fails_at", "allocate_fails_at"}) {
    for (int at = 0; at < 45; at += at < 2 ? 1 : 3) {
      auto session = SessionOn(
          AcceleratedEnvironment(StrCat(what, "=", at, ",speed=1e6,launch_us=0")), module);
      ASSERT_TRUE(session.ok()) << what << " " << at << ": " << session.status().message();
      ExpectSameBits(Must(RunSession(**session, inputs)), expected, StrCat(what, " ", at));
    }
  }
  EXPECT_EQ(NewMisuses(), "");
}

// A strict model returns the error instead, and its session stays usable.
TEST_P(AcceleratorFails, StrictModelReturnsTheError) {
  const auto expected = Must(RunModule(module, inputs, {"reference"}));
  const bool dies = std::string_view(std::get<0>(GetParam())) == "dies_after";
  int failed_runs = 0, last_failure = 0;
  for (int at = 0; at <= last_failure + 5; ++at) {
    auto env = AcceleratedEnvironment(OptionsFor(at));
    auto session = SessionOn(env, module, Strict());
    if (!session.ok()) {
      EXPECT_EQ(session.status().code(), Code::kDelegate) << session.status().message();
      last_failure = at;
      continue;
    }
    bool failed = false;
    for (int run = 0; run < 3; ++run) {
      const auto got = RunSession(**session, inputs);
      if (got.ok()) {
        EXPECT_FALSE(failed && dies);
        ExpectSameBits(*got, expected, StrCat("at ", at));
        continue;
      }
      EXPECT_EQ(got.status().code(), Code::kDelegate) << got.status().message();
      EXPECT_TRUE(!failed || dies) << "a single failure lasts: " << got.status().message();
      EXPECT_FALSE((*session)->Output(0).ok());
      failed = true;
    }
    failed_runs += failed;
    if (failed) last_failure = at;
    ASSERT_FALSE(HasFailure()) << "at " << at;
  }
  EXPECT_GT(failed_runs, 0);
}

INSTANTIATE_TEST_SUITE_P(All, AcceleratorFails,
                         ::testing::Combine(::testing::Values("dies_after", "run_fails_at",
                                                              "copy_fails_at", "allocate_fails_at"),
                                            ::testing::Bool()),
                         [](const auto& row) {
                           return StrCat(std::get<0>(row.param),
                                         std::get<1>(row.param) ? "_late" : "");
                         });

}  // namespace
}  // namespace msrt::testing
