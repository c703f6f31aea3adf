// Sessions with a device: transfers between host and device other than tensors from kernel to
// kernel. Sizes that depend on data, state, views, outputs of every kind, several threads,
// cancellation, bad data.
#include <atomic>
#include <thread>

#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/same_runs.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

class AcceleratorSession : public ::testing::Test {
 protected:
  ~AcceleratorSession() override { EXPECT_EQ(NewMisuses(), ""); }
};

CompileOptions ReferenceOnly() {
  CompileOptions options;
  options.place.delegates = {"reference"};
  return options;
}

CompileOptions Strict() {
  CompileOptions options;
  options.place.strict = true;
  return options;
}

// A model on both delegates: nodes whose names begin with "d" on the device, those with "h" on the
// host.
Result<std::shared_ptr<const CompiledModel>> Split(const Module& module, const std::string& options,
                                                   const CompileOptions& given = {},
                                                   std::string* log = nullptr) {
  CompileOptions compile = given;
  compile.place.pins = {{"d*", "", "accelerator", false}, {"h*", "", "reference", false}};
  compile.passes.disabled = {"all"};
  return CompileModule(AcceleratedEnvironment(options, log), module, compile);
}

// Compares runs on both delegates with the reference; with and without chains and delays.
void ExpectLikeReference(const Module& module, const std::vector<std::vector<ConstTensor>>& runs) {
  auto reference = CompileModule(AcceleratedEnvironment(""), module, ReferenceOnly());
  ASSERT_TRUE(reference.ok()) << reference.status().message();
  for (const char* options : {"", "chain=1", "delay_us=200", "delay_us=200,chain=1,seed=3"}) {
    auto model = Split(module, options, Strict());
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
    ASSERT_TRUE(session.ok() && expected.ok());
    ExpectSameRuns(**session, **expected, runs, options);
  }
}

ConstTensor Numbers(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 2.5f;
  return Floats({count}, values);
}

// The new shape is computed on the device, and the device continues with a tensor of that shape.
TEST_F(AcceleratorSession, DataOnTheDeviceDeterminesSizes) {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {kUnknownDim});
  const ValueId a = g.Input("a", DType::kI64, {2}), b = g.Input("b", DType::kI64, {2});
  const ValueId relu = g.Add("Relu", "d_relu", {x});
  const ValueId shape = g.Add("Mul", "d_shape", {a, b});
  const ValueId reshaped = g.Add("Reshape", "reshaped", {relu, shape});
  const ValueId turned = g.Add("Transpose", "d_turned", {reshaped}, {{"perm", Ints{1, 0}}});
  const ValueId negative = g.Add("Neg", "h_negative", {turned});
  g.graph.outputs = {g.Add("Exp", "d_exp", {negative}), shape};
  const auto ints = [](int64_t p, int64_t q) { return ConstTensor::Int64s(Ints{p, q}); };
  ExpectLikeReference(g.module, {{Numbers(6), ints(1, 3), ints(2, 1)},
                                 {Numbers(8), ints(2, 2), ints(1, 2)},
                                 {Numbers(6), ints(1, 1), ints(6, 1)}});
}

// Two sizes in sequence; the second is known only after the first has been used.
TEST_F(AcceleratorSession, DataDeterminesSizesTwice) {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {kUnknownDim});
  const ValueId k = g.Input("k", DType::kI64, {1});
  const ValueId zero =
      g.graph.AddConstant("zero", ConstTensor::Of<int64_t>(DType::kI64, {}, Ints{0}));
  const ValueId one =
      g.graph.AddConstant("one", ConstTensor::Of<int64_t>(DType::kI64, {}, Ints{1}));
  auto top = GraphBuilder(&g.graph).Add("", "TopK", "d_top", {x, k}, {{"axis", int64_t{0}}}, 2);
  ASSERT_TRUE(top.ok()) << top.status().message();
  // The largest index as a number is the length of the range.
  const ValueId most =
      g.Add("ReduceMax", "d_most", {(*top)[1]}, {{"keepdims", int64_t{0}}, {"axes", Ints{0}}});
  const ValueId range = g.Add("Range", "d_range", {zero, most, one});
  const ValueId twice = g.Add("Add", "h_twice", {range, range});
  g.graph.outputs = {(*top)[0], g.Add("Mul", "d_square", {twice, twice})};
  const auto count = [](int64_t n) { return ConstTensor::Int64s(Ints{n}); };
  ExpectLikeReference(g.module,
                      {{Numbers(6), count(2)}, {Numbers(9), count(4)}, {Numbers(5), count(1)}});
}

// counter = 2 * (counter + x), with reads before, between and after the two writes.
Module CounterModule(int64_t count) {
  SmallGraph g;
  g.module.states.push_back({"counter", Type::Tensor(DType::kF32, {count}), Numbers(count)});
  GraphBuilder b(&g.graph);
  const ValueId x = g.Input("x", DType::kF32, {count});
  const AttrList read{{"slot", int64_t{0}}, {"dtype", DType::kF32}, {"dims", Ints{count}}};
  const auto write = [&](const char* name, ValueId v) {
    EXPECT_TRUE(b.Add("msrt", "StateWrite", name, {v}, {{"slot", int64_t{0}}}, 0).ok());
  };
  const ValueId before = (*b.Add("msrt", "StateRead", "before", {}, read, 1))[0];
  write("write", g.Add("Add", "d_sum", {before, x}));
  const ValueId middle = (*b.Add("msrt", "StateRead", "middle", {}, read, 1))[0];
  const ValueId doubled = g.Add("Add", "d_doubled", {middle, middle});
  write("again", doubled);
  const ValueId after = (*b.Add("msrt", "StateRead", "after", {}, read, 1))[0];
  g.graph.outputs = {g.Add("Neg", "d_old", {before}), g.Add("Neg", "d_middle", {middle}), after};
  return std::move(g.module);
}

TEST_F(AcceleratorSession, StateIsReadAndWrittenAroundDeviceSteps) {
  const std::vector<ConstTensor> input{Floats({2}, {1, 2})};
  ExpectLikeReference(CounterModule(2), {input, input, {Floats({2}, {-3, 0})}, input});
}

// A run that fails on the device is repeated elsewhere and updates the state only once.
TEST_F(AcceleratorSession, FailedRunDoesNotChangeState) {
  constexpr int64_t kCount = 1000;
  const std::vector<ConstTensor> input{RandomFloats({kCount}, 1)};
  int failures = 0;
  for (int at = 0; at < 16; ++at) {
    std::string log;
    auto env =
        AcceleratedEnvironment(StrCat("fails_late=1,run_fails_at=", at, ",", kFastDevice), &log);
    auto model = CompileModule(env, CounterModule(kCount), {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto reference = CompileModule(env, CounterModule(kCount), ReferenceOnly());
    auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
    for (int run = 0; run < 3; ++run)
      ExpectSameBits(*RunSession(**session, input), *RunSession(**expected, input),
                     StrCat("at ", at));
    failures += !log.empty();
  }
  EXPECT_GT(failures, 3);
}

// Views of device tensors, on the device and on the host; outputs that are views, inputs,
// constants, computed on the device, listed twice, and read by both sides.
TEST_F(AcceleratorSession, ViewsAndOutputsOfEveryKindAreRight) {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {kUnknownDim, 4});
  const ValueId c = g.graph.AddConstant("c", Floats({4}, {1, -1, 2, -2}));
  const ValueId sum = g.Add("Add", "d_sum", {x, c});
  const ValueId flat = g.Add("Reshape", "flat", {sum}, {{"shape", Ints{-1}}});
  const ValueId flat_abs = g.Add("Abs", "d_abs", {flat});
  const ValueId host_view = g.Add("Unsqueeze", "unsqueezed", {flat_abs}, {{"axes", Ints{0}}});
  const ValueId host_neg = g.Add("Neg", "h_neg", {host_view});
  const ValueId back = g.Add("Reshape", "back", {host_neg}, {{"shape", Ints{-1, 4}}});
  const ValueId mixed = g.Add("Mul", "d_mixed", {back, sum});
  const ValueId sum_on_host = g.Add("Relu", "h_relu", {sum});
  g.graph.outputs = {mixed, mixed, x, c, flat, sum, back, sum_on_host, host_view};
  ExpectLikeReference(g.module, {{RandomFloats({3, 4}, 1)},
                                 {RandomFloats({1, 4}, 2)},
                                 {RandomFloats({0, 4}, 3)},
                                 {RandomFloats({50, 4}, 4)}});
}

TEST_F(AcceleratorSession, OutputsGoToMemoryOfTheCaller) {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {kUnknownDim});
  const ValueId y = g.Add("Exp", "d_exp", {x});
  g.graph.outputs = {y, g.Add("Neg", "h_neg", {y})};
  auto model = Split(g.module, "delay_us=300");
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  std::vector<float> exp(3, -1), neg(3, -1);
  ASSERT_TRUE(
      (*session)->SetOutput(0, {DType::kF32, {3}, Layout::kPlain, exp.data()}, nullptr).ok());
  ASSERT_TRUE(
      (*session)->SetOutput(1, {DType::kF32, {3}, Layout::kPlain, neg.data()}, nullptr).ok());
  ASSERT_TRUE(RunSession(**session, {Floats({3}, {0, 0, 0})}).ok());
  EXPECT_EQ(exp, std::vector<float>(3, 1));
  EXPECT_EQ(neg, std::vector<float>(3, -1));
}

// A chain of blocks that alternate between device and host, over x of any length.
Module ZigzagModule(int nodes) {
  SmallGraph g;
  ValueId v = g.Input("x", DType::kF32, {kUnknownDim});
  const ValueId x = v;
  for (int i = 0; i < nodes; ++i) {
    const std::string name = StrCat(i % 3 == 2 ? "h" : "d", i);
    v = i % 2 == 0 ? g.Add("Neg", name, {v}) : g.Add("Add", name, {v, x});
  }
  g.graph.outputs = {v};
  return std::move(g.module);
}

TEST_F(AcceleratorSession, ThreadsMayUseDifferentShapes) {
  const Module module = ZigzagModule(14);
  auto reference = CompileModule(AcceleratedEnvironment(""), module, ReferenceOnly());
  // The cache holds one binding at a time: bindings are evicted while other sessions run them.
  CompileOptions options = Strict();
  options.binding_cache_bytes = 1;
  auto model = Split(module, "delay_us=50", options);
  ASSERT_TRUE(model.ok() && reference.ok()) << model.status().message();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
      for (uint32_t i = 0; i < 25; ++i) {
        const std::vector<ConstTensor> input{
            RandomFloats({static_cast<int64_t>(1 + (i * 7 + t) % 5 * 100)}, t * 100 + i)};
        const auto got = RunSession(**session, input), want = RunSession(**expected, input);
        if (!got.ok() || !want.ok() || !Difference((*got)[0], (*want)[0], 0, 0).empty()) ++wrong;
        if (i % 10 == 9) (*session)->Trim();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// The device is lost while several sessions run: every run returns the right result.
TEST_F(AcceleratorSession, RunsOfSeveralThreadsSurviveALostDevice) {
  const Module module = ZigzagModule(14);
  auto reference = CompileModule(AcceleratedEnvironment(""), module, ReferenceOnly());
  ASSERT_TRUE(reference.ok());
  for (int at : {60, 150, 300}) {
    std::string log;
    auto env = AcceleratedEnvironment(
        StrCat("delay_us=50,fails_late=1,dies_after=", at, ",", kFastDevice), &log);
    auto model = CompileModule(env, module, {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        auto session = Session::Create(*model, 0, {}),
             expected = Session::Create(*reference, 0, {});
        for (uint32_t i = 0; i < 40; ++i) {
          const std::vector<ConstTensor> input{RandomFloats({100 + i}, t * 100 + i)};
          const auto got = RunSession(**session, input), want = RunSession(**expected, input);
          if (!got.ok() || !want.ok() || !Difference((*got)[0], (*want)[0], 0, 0).empty()) ++wrong;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    // Replaced once, by the first thread.
    EXPECT_EQ(log.find("placed again"), log.rfind("placed again")) << log;
    EXPECT_NE(log.find("placed again"), std::string::npos) << "at " << at;
  }
}

TEST_F(AcceleratorSession, CancelAndDeadlineStopARun) {
  // 40 nodes of up to 5 ms each on the device, with host steps between them.
  auto model = Split(ZigzagModule(40), "delay_us=5000,chain=1");
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  const std::vector<ConstTensor> input{Numbers(100)};
  const auto expected = RunSession(**session, input);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  for (int round = 0; round < 3; ++round) {
    std::thread cancel([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      (*session)->Cancel();
    });
    EXPECT_EQ((*session)->Run({}).code(), Code::kCancelled);
    cancel.join();
    const Status late =
        (*session)->Run({.deadline_nanos = (*model)->environment->clock->NowNanos() + 20'000'000});
    EXPECT_EQ(late.code(), Code::kDeadlineExceeded) << late.message();
  }
  ExpectSameBits(*RunSession(**session, input), *expected);
}

// The device could compute sixteen large values before the host computes the small ones, and has
// memory for six.
TEST_F(AcceleratorSession, EarlyStepsFitTheDeviceMemory) {
  constexpr int64_t kCount = 256;
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {1, kCount}),
                z = g.Input("z", DType::kF32, {kCount, 1});
  for (int i = 0; i < 16; ++i) {
    const ValueId large = g.Add("Add", StrCat("d_large", i), {x, z}),
                  small = g.Add("Relu", StrCat("h_small", i), {z});
    g.graph.outputs.push_back(g.Add("MatMul", StrCat("d_fold", i), {large, small}));
  }
  auto reference = CompileModule(AcceleratedEnvironment(""), g.module, ReferenceOnly());
  auto model = Split(g.module, StrCat("chain=1,capacity=", 6 * kCount * kCount * 4), Strict());
  ASSERT_TRUE(model.ok() && reference.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {}), expected = Session::Create(*reference, 0, {});
  ASSERT_TRUE(session.ok() && expected.ok());
  ExpectSameRuns(**session, **expected,
                 {{RandomFloats({1, kCount}, 1), RandomFloats({kCount, 1}, 2)}}, "");
}

// Data that no delegate could use is the caller's error, not the device's: the placement stays.
TEST_F(AcceleratorSession, BadDataDoesNotDisableTheDevice) {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {4});
  const ValueId i = g.Input("i", DType::kI64, {2});
  const ValueId picked = g.Add("Gather", "d_gather", {x, i}, {{"axis", int64_t{0}}});
  g.graph.outputs = {g.Add("Neg", "d_neg", {picked})};
  std::string log;
  auto model = Split(g.module, "delay_us=100", {}, &log);
  ASSERT_TRUE(model.ok()) << model.status().message();
  log.clear();  // a pin of Split has no node here
  auto session = Session::Create(*model, 0, {});
  const auto indices = [](int64_t p, int64_t q) { return ConstTensor::Int64s(Ints{p, q}); };
  for (int round = 0; round < 2; ++round) {
    const auto bad = RunSession(**session, {Numbers(4), indices(0, 9)});
    EXPECT_EQ(bad.status().code(), Code::kInvalidArgument) << bad.status().message();
    const auto good = RunSession(**session, {Numbers(4), indices(0, 3)});
    ASSERT_TRUE(good.ok()) << good.status().message();
  }
  EXPECT_EQ(log, "");
}

}  // namespace
}  // namespace msrt::testing
