// Control flow through the whole runtime: graphs that call each other, loops, functions as values,
// lists.
#include <gtest/gtest.h>

#include <thread>

#include "ops/validate.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

using testing::CountingLoop;
using testing::kFlag;
using testing::kNumber;
using Flow = testing::ModuleBuilder;

ConstTensor Numbers(Dims dims, const std::vector<int64_t>& values) {
  return ConstTensor::Of<int64_t>(DType::kI64, dims, std::span(values));
}
ConstTensor Number(int64_t value) { return Numbers({}, {value}); }

// Passes would simplify some of the constructs under test.
const std::vector<std::string> kNoPasses = {"all"};

Result<std::unique_ptr<Session>> Open(const Module& module,
                                      const std::vector<std::string>& disabled_passes = kNoPasses) {
  CompileOptions options;
  options.passes.disabled = disabled_passes;
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(testing::TestEnvironment(), module, options));
  return Session::Create(std::move(model), 0, {});
}

Result<int64_t> ComputeWithout(const std::vector<std::string>& disabled_passes,
                               const Module& module, const std::vector<int64_t>& inputs) {
  std::vector<ConstTensor> tensors;
  for (int64_t i : inputs) tensors.push_back(Number(i));
  MSRT_ASSIGN_OR_RETURN(auto session, Open(module, disabled_passes));
  MSRT_ASSIGN_OR_RETURN(const std::vector<ConstTensor> outputs,
                        testing::RunSession(*session, tensors));
  return outputs[0].As<int64_t>()[0];
}

// Runs without passes and with all passes, which must make no difference.
Result<int64_t> Compute(const Module& module, const std::vector<int64_t>& inputs) {
  auto plain = ComputeWithout(kNoPasses, module, inputs);
  const auto optimised = ComputeWithout({}, module, inputs);
  EXPECT_EQ(plain.ok(), optimised.ok());
  EXPECT_EQ(plain.ok() ? *plain : 0, optimised.ok() ? *optimised : 0);
  return plain;
}

int64_t Must(Result<int64_t> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : INT64_MIN;
}

// A clock that is past the deadline from its `reads`-th reading on.
class LateClock final : public Clock {
 public:
  static constexpr int64_t kDeadline = 3'600'000'000'000;
  int64_t NowNanos() override { return reads-- > 1 ? 0 : kDeadline + 1; }
  int reads = INT32_MAX;
};

TEST(Control, DeadlineStopsABranchWithoutNodes) {
  Flow f(3);
  const ValueId n = f.Input(0, kNumber);
  f.Output(0, f.If(0, f.Op(0, "LessOrEqual", {n, f.Number(0, 1)}), {n}, 1, 2));
  f.Input(1, kNumber);
  f.Output(1, f.Number(1, 1));
  f.Output(2, f.Input(2, kNumber));
  LateClock clock;
  auto env = testing::TestEnvironment();
  env->clock = &clock;
  CompileOptions options;
  options.passes.disabled = kNoPasses;
  auto model = CompileModule(env, f.module, options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(testing::RunSession(**session, {Number(0)}).ok());
  bool in_branch = false;
  for (int reads = 1; reads < 100 && !in_branch; ++reads) {
    clock.reads = reads;
    const Status status = (*session)->Run({.deadline_nanos = LateClock::kDeadline});
    in_branch = status.message().find("before output") != std::string::npos;
    if (status.ok()) break;
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
  }
  EXPECT_TRUE(in_branch);
}

TEST(Control, ProfileOfALoopContainsItsBody) {
  auto session = Open(CountingLoop());
  ASSERT_TRUE(session.ok()) << session.status().message();
  ASSERT_TRUE(testing::RunSession(**session, {Number(0), Number(3)}, {.profile = true}).ok());
  const RunProfile& profile = (*session)->profile();
  const std::vector<int64_t> self = SelfNanos(profile);
  size_t loops = 0, inside = 0;
  int64_t self_total = 0;
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const StepTime& time = profile.steps[i];
    const bool loop = time.placed->program->steps[time.step].kind == StepKind::kControl;
    loops += loop;
    inside += !loop && time.placed != profile.placed &&
              time.begin_nanos >= profile.steps[0].begin_nanos &&
              time.end_nanos <= profile.steps[0].end_nanos;
    EXPECT_GE(self[i], 0);
    EXPECT_EQ(self[i] == time.nanos(), !loop);
    self_total += self[i];
  }
  EXPECT_EQ(loops, 1u);
  EXPECT_EQ(inside, 4u + 3u);  // the condition once more than the body
  EXPECT_LE(self_total, profile.end_nanos - profile.begin_nanos);
  ASSERT_TRUE((*session)->Run({}).ok());
  EXPECT_TRUE((*session)->profile().steps.empty());
}

// n! as n * (n-1)!: not a tail call.
Module Factorial() {
  Flow f(3);
  const ValueId n = f.Input(0, kNumber);
  f.Output(0, f.If(0, f.Op(0, "LessOrEqual", {n, f.Number(0, 1)}), {n}, 1, 2));
  f.Input(1, kNumber);
  f.Output(1, f.Op(1, "Identity", {f.Number(1, 1)}));
  const ValueId m = f.Input(2, kNumber);
  f.Output(2, f.Op(2, "Mul", {m, f.Call(2, 0, {f.Op(2, "Sub", {m, f.Number(2, 1)})})}));
  return f.module;
}

Module Fibonacci() {
  Flow f(3);
  const ValueId n = f.Input(0, kNumber);
  f.Output(0, f.If(0, f.Op(0, "Less", {n, f.Number(0, 2)}), {n}, 1, 2));
  f.Output(1, f.Input(1, kNumber));
  const ValueId m = f.Input(2, kNumber);
  const ValueId a = f.Call(2, 0, {f.Op(2, "Sub", {m, f.Number(2, 1)})}),
                b = f.Call(2, 0, {f.Op(2, "Sub", {m, f.Number(2, 2)})});
  f.Output(2, f.Op(2, "Add", {a, b}));
  return f.module;
}

// Counts down by calling itself last.
Module CountDown() {
  Flow f(3);
  const ValueId n = f.Input(0, kNumber), sum = f.Input(0, kNumber);
  f.Output(0, f.If(0, f.Op(0, "Equal", {n, f.Number(0, 0)}), {n, sum}, 1, 2));
  f.Input(1, kNumber);
  f.Output(1, f.Input(1, kNumber));
  const ValueId m = f.Input(2, kNumber), s = f.Input(2, kNumber);
  f.Output(2, f.Call(2, 0, {f.Op(2, "Sub", {m, f.Number(2, 1)}), f.Op(2, "Add", {s, m})}));
  return f.module;
}

TEST(Recursion, ComputesFactorialFibonacciAndAckermann) {
  EXPECT_EQ(Must(Compute(Factorial(), {10})), 3628800);
  EXPECT_EQ(Must(Compute(Fibonacci(), {15})), 610);
  // A(m, n): two branches inside a branch, and a call inside a call's argument.
  Flow f(5);
  const ValueId m = f.Input(0, kNumber), n = f.Input(0, kNumber);
  f.Output(0, f.If(0, f.Op(0, "Equal", {m, f.Number(0, 0)}), {m, n}, 1, 2));
  f.Input(1, kNumber);
  f.Output(1, f.Op(1, "Add", {f.Input(1, kNumber), f.Number(1, 1)}));
  const ValueId m2 = f.Input(2, kNumber), n2 = f.Input(2, kNumber);
  f.Output(2, f.If(2, f.Op(2, "Equal", {n2, f.Number(2, 0)}), {m2, n2}, 3, 4));
  const ValueId m3 = f.Input(3, kNumber);
  f.Input(3, kNumber);
  f.Output(3, f.Call(3, 0, {f.Op(3, "Sub", {m3, f.Number(3, 1)}), f.Number(3, 1)}));
  const ValueId m4 = f.Input(4, kNumber), n4 = f.Input(4, kNumber);
  const ValueId inner = f.Call(4, 0, {m4, f.Op(4, "Sub", {n4, f.Number(4, 1)})});
  f.Output(4, f.Call(4, 0, {f.Op(4, "Sub", {m4, f.Number(4, 1)}), inner}));
  EXPECT_EQ(Must(Compute(f.module, {2, 3})), 9);
  EXPECT_EQ(Must(Compute(f.module, {3, 3})), 61);
}

TEST(Recursion, GraphsMayCallEachOther) {
  Flow f(6);  // even(n) = n == 0 ? 1 : odd(n - 1)
  const auto half = [&](uint32_t g, uint32_t base, uint32_t step, uint32_t other, int64_t at_zero) {
    const ValueId n = f.Input(g, kNumber);
    f.Output(g, f.If(g, f.Op(g, "Equal", {n, f.Number(g, 0)}), {n}, base, step));
    f.Input(base, kNumber);
    f.Output(base, f.Op(base, "Identity", {f.Number(base, at_zero)}));
    f.Output(step,
             f.Call(step, other, {f.Op(step, "Sub", {f.Input(step, kNumber), f.Number(step, 1)})}));
  };
  half(0, 1, 2, 3, 1);
  half(3, 4, 5, 0, 0);
  EXPECT_EQ(Must(Compute(f.module, {10})), 1);
  EXPECT_EQ(Must(Compute(f.module, {7})), 0);
}

TEST(Recursion, DepthIsLimitedAndMemoryIsReleased) {
  auto session = Open(Factorial());
  ASSERT_TRUE(session.ok()) << session.status().message();
  const ConstTensor deep = Number(40'000);  // two frames each: the branch and the graph
  (void)(*session)->SetInput(
      0, {deep.dtype, deep.dims, Layout::kPlain, const_cast<std::byte*>(deep.bytes.data())},
      nullptr);
  EXPECT_TRUE((*session)->Run({}).ok());
  const Status limited = (*session)->Run({.max_depth = 1000});
  EXPECT_EQ(limited.code(), Code::kLimitExceeded);
  EXPECT_NE(limited.message().find("is active 1000 times at once"), std::string::npos)
      << limited.message();
  (*session)->Trim();
  EXPECT_EQ((*session)->memory().total(), 0u);
  const Status calls = (*session)->Run({.max_calls = 500});
  EXPECT_EQ(calls.code(), Code::kLimitExceeded);
}

TEST(Recursion, TailCallsTakeConstantMemory) {
  auto session = Open(CountDown());
  ASSERT_TRUE(session.ok()) << session.status().message();
  size_t bytes = 0;
  for (const int64_t n : {10, 200'000}) {
    const auto outputs = testing::RunSession(**session, {Number(n), Number(0)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].As<int64_t>()[0], n * (n + 1) / 2);
    if (n == 10) bytes = (*session)->memory().total();
  }
  EXPECT_EQ((*session)->memory().total(), bytes);
}

TEST(Loops, WhileRunsUntilItsConditionFails) {
  EXPECT_EQ(Must(Compute(CountingLoop(), {0, 1000})), 1000);
  EXPECT_EQ(Must(Compute(CountingLoop(), {5, 3})), 5);  // not once
}

TEST(Loops, EndlessLoopStopsAtTheDeadlineAndOnCancel) {
  Module module = CountingLoop();
  auto session = Open(module);
  ASSERT_TRUE(session.ok());
  const ConstTensor from = Number(0), to = Number(INT64_MAX);
  for (size_t i = 0; i < 2; ++i) {
    const ConstTensor& t = i == 0 ? from : to;
    (void)(*session)->SetInput(
        i, {t.dtype, t.dims, Layout::kPlain, const_cast<std::byte*>(t.bytes.data())}, nullptr);
  }
  const Status late = (*session)->Run({.deadline_nanos = DefaultClock()->NowNanos() + 20'000'000});
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded) << late.message();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    (*session)->Cancel();
  });
  const Status cancelled = (*session)->Run({});
  canceller.join();
  EXPECT_EQ(cancelled.code(), Code::kCancelled) << cancelled.message();
}

// A loop whose value grows by one element per iteration, and which scans the squared counter.
TEST(Loops, CarriedValuesMayChangeTheirShape) {
  Flow f(2);
  const Type open = Type::Tensor(DType::kI64, {kUnknownDim});
  const ValueId trips = f.Input(0, kNumber), start = f.Input(0, open);
  const auto results = f.Control(0, "", "Loop", {trips, kNoValue, start},
                                 {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {open, open});
  f.Output(0, results[0]);
  f.Output(0, results[1]);
  const ValueId i = f.Input(1, kNumber), go_on = f.Input(1, kFlag), x = f.Input(1, open);
  f.Output(1, go_on);
  f.Output(1, f.Op(1, "Concat", {x, f.Op(1, "Unsqueeze", {i}, {{"axes", std::vector<int64_t>{0}}})},
                   {{"axis", int64_t{0}}}));
  f.Output(1, f.Op(1, "Mul", {i, i}));
  auto session = Open(f.module);
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const int64_t n : {4, 0, 6}) {
    const auto outputs = testing::RunSession(**session, {Number(n), Numbers({1}, {7})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    ASSERT_EQ((*outputs)[0].dims, Dims{n + 1});
    ASSERT_EQ((*outputs)[1].dims, Dims{n});
    EXPECT_EQ((*outputs)[0].As<int64_t>()[0], 7);
    for (int64_t k = 0; k < n; ++k) {
      EXPECT_EQ((*outputs)[0].As<int64_t>()[static_cast<size_t>(k) + 1], k);
      EXPECT_EQ((*outputs)[1].As<int64_t>()[static_cast<size_t>(k)], k * k);
    }
  }
}

TEST(Functions, SwitchSelectsAClosureAndCallPassesItsCaptures) {
  Flow f(4);
  const ValueId index = f.Input(0, kNumber), x = f.Input(0, kNumber);
  const Type function = Type::Function({kNumber}, {kNumber});
  const ValueId chosen = f.Control(0, "msrt", "SwitchN", {index, x},
                                   {{"branches", std::vector<GraphRef>{{1}, {2}}}}, {function})[0];
  f.Output(0, f.Control(0, "msrt", "Call", {chosen, f.Number(0, 10)}, {}, {kNumber})[0]);
  for (const uint32_t g : {1u, 2u}) {
    const ValueId captured = f.Input(g, kNumber);
    const ValueId bound = g == 1 ? captured : f.Op(g, "Neg", {captured});
    f.Output(g, f.Control(g, "msrt", "Partial", {bound}, {{"graph", GraphRef{3}}}, {function})[0]);
  }
  f.Output(3, f.Op(3, "Sub", {f.Input(3, kNumber), f.Input(3, kNumber)}));
  EXPECT_EQ(Must(Compute(f.module, {0, 3})), 3 - 10);
  EXPECT_EQ(Must(Compute(f.module, {1, 3})), -3 - 10);
  EXPECT_EQ(Must(Compute(f.module, {-1, 3})), -3 - 10);  // from the end
  const auto beyond = Compute(f.module, {2, 3});
  EXPECT_NE(beyond.status().message().find("index 2 names none of 2 branches"), std::string::npos)
      << beyond.status().message();
}

TEST(State, LoopBodyReadsAndWritesState) {
  Flow f(2);
  f.module.states.push_back({"count", kNumber, Number(5)});
  const ValueId trips = f.Input(0, kNumber);
  f.Control(0, "", "Loop", {trips, kNoValue}, {{"body", GraphRef{1}}, {"carried", int64_t{0}}}, {});
  const AttrList read = {
      {"slot", int64_t{0}}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}};
  f.Output(0, f.Control(0, "msrt", "StateRead", {}, read, {kNumber})[0]);
  f.Input(1, kNumber);
  const ValueId go_on = f.Input(1, kFlag);
  const ValueId old = f.Control(1, "msrt", "StateRead", {}, read, {kNumber})[0];
  f.Control(1, "msrt", "StateWrite", {f.Op(1, "Add", {old, f.Number(1, 2)})},
            {{"slot", int64_t{0}}}, {});
  f.Output(1, go_on);
  auto session = Open(f.module);
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const int64_t want : {11, 17}) {
    const auto outputs = testing::RunSession(**session, {Number(3)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].As<int64_t>()[0], want);
  }
  // A run that is stopped leaves the state alone.
  EXPECT_FALSE((*session)->Run({.max_calls = 3}).ok());
  EXPECT_EQ(*(*session)->State(0)->As<int64_t>(), 17);
}

struct BadModule {
  const char* name;
  const char* message;
  void (*spoil)(Flow*);
};
class BadControl : public ::testing::TestWithParam<BadModule> {};

TEST_P(BadControl, IsRefused) {
  Flow f(3);
  const ValueId c = f.Input(0, kFlag), x = f.Input(0, kNumber);
  f.Output(0, f.If(0, c, {x}, 1, 2));
  for (const uint32_t g : {1u, 2u}) f.Output(g, f.Op(g, "Neg", {f.Input(g, kNumber)}));
  GetParam().spoil(&f);
  const Status status = Validate(&f.module);
  EXPECT_NE(status.message().find(GetParam().message), std::string::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(
    , BadControl,
    ::testing::Values(
        BadModule{"BranchTypes",
                  "result 0 differs from branch to branch: element type i64 is not f32",
                  [](Flow* f) {
                    f->module.graphs[2].outputs[0] =
                        f->Op(2, "Cast", {f->module.graphs[2].outputs[0]}, {{"to", DType::kF32}});
                  }},
        BadModule{"BranchResults", "its branches give 1 and 0 results",
                  [](Flow* f) { f->module.graphs[2].outputs.clear(); }},
        BadModule{"Captures", "takes 2 inputs, gets 1", [](Flow* f) { f->Input(1, kNumber); }},
        BadModule{"CaptureType", "input 0 'in0': element type f32 is not i64",
                  [](Flow* f) {
                    f->module.graphs[1] = {};
                    f->Output(1, f->Op(1, "Cast", {f->Input(1, Type::Tensor(DType::kF32, {}))},
                                       {{"to", DType::kI64}}));
                  }},
        BadModule{"Dangling", "refers to graph 9, the module has 3",
                  [](Flow* f) {
                    f->module.graphs[0].nodes.back().attrs.Set("else_branch", GraphRef{9});
                  }},
        BadModule{"Outputs", "has 2 outputs, the called graph has 1",
                  [](Flow* f) {
                    f->module.graphs[0].nodes.back().outputs.push_back(
                        f->module.graphs[0].AddValue("more", kNumber));
                  }},
        BadModule{"NoFunction", "calls neither a graph nor a function: input 0 is i64[]",
                  [](Flow* f) {
                    f->Control(0, "msrt", "Call", {f->module.graphs[0].inputs[1]}, {}, {kNumber});
                  }},
        BadModule{"NothingToCall", "has 0 inputs",
                  [](Flow* f) { f->Control(0, "msrt", "Call", {}, {}, {kNumber}); }},
        BadModule{"FunctionWithoutOutput", "has no output for its function",
                  [](Flow* f) {
                    f->Control(0, "msrt", "Partial", {}, {{"graph", GraphRef{1}}},
                               {Type::Function({kNumber}, {kNumber})});
                    f->module.graphs[0].nodes.back().outputs.clear();
                  }}),
    [](const auto& row) { return row.param.name; });

// Placement guesses a rank that the Scan cannot slice; the actual input has another.
TEST(Control, ScanAcceptsUnknownRank) {
  Flow f(2);
  const Type any = Type::UnrankedTensor(DType::kI64);
  const AttrList attrs = {{"body", GraphRef{1}},
                          {"carried", int64_t{0}},
                          {"num_scan_inputs", int64_t{1}},
                          {"scan_input_axes", std::vector<int64_t>{1}}};
  f.Output(0, f.Control(0, "", "Scan", {f.Input(0, any)}, attrs, {any})[0]);
  f.Output(1, f.Op(1, "Neg", {f.Input(1, any)}));
  auto session = Open(f.module);
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto result = testing::RunSession(**session, {Numbers({2, 3}, {1, 2, 3, 4, 5, 6})});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ((*result)[0].dims, (Dims{3, 2}));
  EXPECT_EQ((*result)[0].As<int64_t>()[1], -4);
}

}  // namespace
}  // namespace msrt
