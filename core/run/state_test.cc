// State slots of one session: roles, reads and updates in place, failing runs, the cost of binding.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/thread_clock.h"
#include "core/run/state_testing.h"

namespace msrt {
namespace {

using testing::RunSession;
using testing::TestEnvironment;

const Step& OnlyStep(const Session& session, StepKind kind) {
  for (const Step& step : session.program().steps) {
    if (step.kind == kind) return step;
  }
  ADD_FAILURE() << "no such step";
  return session.program().steps[0];
}

TEST(State, ParameterIsReadInPlaceThoughAnotherEntryWritesIt) {
  const auto model = Compiled(TrainAndEval(8));
  const auto eval = Make(model);
  EXPECT_EQ(OnlyStep(*eval, StepKind::kStateRead).access, StateAccess::kInPlace);
}

TEST(State, UpdateIsMadeInTheSlotsMemory) {
  const auto model = Compiled(TrainAndEval(8));
  const auto train = Make(model, 1);
  EXPECT_EQ(OnlyStep(*train, StepKind::kStateRead).access, StateAccess::kInPlace);
  EXPECT_EQ(train->program().state_updates.size(), 1u);
  const std::vector<float> before = StateOf(*train, 0);
  const ConstTensor gradient = RampTensor({1, 8}, 1);
  RunOnce(train.get(), {gradient});
  const std::byte* memory = static_cast<std::byte*>(train->State(0)->data);
  std::vector<float> expected = before;
  for (size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.5f * gradient.As<float>()[i % 8];
  EXPECT_EQ(StateOf(*train, 0), expected);
  RunOnce(train.get(), {gradient});
  EXPECT_EQ(static_cast<std::byte*>(train->State(0)->data), memory);  // never swapped
  for (size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.5f * gradient.As<float>()[i % 8];
  EXPECT_EQ(StateOf(*train, 0), expected);
  EXPECT_EQ(train->memory().state_bytes, 8u * 8 * 4);  // once, not twice
}

// ---- values are those at the time of the read ---------------------------------------------------

// Reads the slot, writes `value` to it, and returns the value from before, doubled.
Module ReadWriteUse(StateRole role) {
  Draft d;
  const int64_t slot = d.AddState("s", role, Floats({3}, {1, 2, 3}));
  Graph& g = d.module.graphs[d.AddGraph("main")];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {3})),
                two = g.AddConstant("two", Floats({1}, {2}));
  const ValueId read = d.Read(&g, slot, "read");
  d.Write(&g, slot, x);
  g.outputs = {Must(b.Add("Mul", "y", {read, two}))};
  d.module.entries = {0};
  return std::move(d.module);
}

TEST(State, ValueReadBeforeAWriteStaysAsItWas) {
  for (uint32_t r = 0; r < kStateRoleCount; ++r) {
    const auto role = static_cast<StateRole>(r);
    const auto session = Make(Compiled(ReadWriteUse(role)));
    EXPECT_EQ(RunOnce(session.get(), {Floats({3}, {7, 8, 9})}), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(RunOnce(session.get(), {Floats({3}, {0, 1, 0})}), (std::vector<float>{14, 16, 18}));
    EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{0, 1, 0})) << StateRoleName(role);
  }
}

// Two updates in one run: the first is still used when the second is made.
TEST(State, ValueWrittenFirstOutlivesTheSecondUpdate) {
  for (uint32_t r = 0; r < kStateRoleCount; ++r) {
    Draft d;
    const int64_t slot = d.AddState("s", static_cast<StateRole>(r), Floats({3}, {1, 2, 3}));
    Graph& g = d.module.graphs[d.AddGraph("main")];
    GraphBuilder b(&g);
    const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {3}));
    const ValueId sum = Must(b.Add("Add", "sum", {d.Read(&g, slot, "read"), x}));
    d.Write(&g, slot, sum);
    const ValueId second = Must(b.Add("Tanh", "second", {sum}));
    d.Write(&g, slot, second);
    g.outputs = {Must(b.Add("Sub", "y", {Must(b.Add("Exp", "exp", {sum})), sum}))};
    d.module.entries = {0};
    const auto session = Make(Compiled(std::move(d.module)));
    const std::vector<float> y = RunOnce(session.get(), {Floats({3}, {0, -1, -3})});
    const std::vector<float> state = StateOf(*session, 0);
    const std::vector<float> expected{1, 1, 0};  // the sum
    ASSERT_EQ(y.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(y[i], std::exp(expected[i]) - expected[i], 1e-6f);
      EXPECT_NEAR(state[i], std::tanh(expected[i]), 1e-6f);
    }
  }
}

// An optimizer updates its tensor and its state without any other buffer.
TEST(State, AdamUpdatesItsSlotsInPlace) {
  Draft d;
  const Dims dims{100};
  const int64_t w = d.AddState("w", StateRole::kParameter, RampTensor(dims, -1)),
                m = d.AddState("m", StateRole::kOptimizer, RampTensor(dims, 0, 0)),
                v = d.AddState("v", StateRole::kOptimizer, RampTensor(dims, 0, 0));
  Graph& g = d.module.graphs[d.AddGraph("train")];
  GraphBuilder b(&g);
  const ValueId gradient = g.AddInput("g", Type::Tensor(DType::kF32, dims)),
                rate = g.AddConstant("rate", Floats({}, {0.1f})),
                count = g.AddConstant(
                    "count", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{0}));
  const auto updated =
      b.Add("ai.onnx.preview.training", "Adam", "adam",
            {rate, count, d.Read(&g, w, "w"), gradient, d.Read(&g, m, "m"), d.Read(&g, v, "v")},
            {{"alpha", 0.5}, {"beta", 0.75}, {"epsilon", 1e-3}}, 3);
  ASSERT_TRUE(updated.ok()) << updated.status().message();
  d.Write(&g, w, (*updated)[0]);
  d.Write(&g, m, (*updated)[1]);
  d.Write(&g, v, (*updated)[2]);
  d.module.entries = {0};
  const auto session = Make(Compiled(std::move(d.module)));
  EXPECT_EQ(session->program().state_updates.size(), 3u);
  std::vector<double> x(100), average(100), squares(100);
  for (size_t i = 0; i < 100; ++i) x[i] = -1 + 0.25 * static_cast<double>(i % 17);
  const ConstTensor gradients = RampTensor(dims, 0.5f);
  for (int step = 0; step < 3; ++step) {
    RunOnce(session.get(), {gradients});
    for (size_t i = 0; i < 100; ++i) {
      const double gr = gradients.As<float>()[i];
      average[i] = 0.5 * average[i] + 0.5 * gr;
      squares[i] = 0.75 * squares[i] + 0.25 * gr * gr;
      x[i] -= 0.1 * average[i] / (std::sqrt(squares[i]) + 1e-3);
    }
  }
  EXPECT_EQ(session->memory().arena_bytes, 0u);
  EXPECT_EQ(session->memory().state_bytes, 3u * 400);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_NEAR(StateOf(*session, 0)[i], x[i], 1e-5);
    EXPECT_NEAR(StateOf(*session, 1)[i], average[i], 1e-5);
    EXPECT_NEAR(StateOf(*session, 2)[i], squares[i], 1e-5);
  }
}

// A value read before a call stays as it was where the called graph writes the slot.
TEST(State, ValueReadBeforeACallThatWritesStaysAsItWas) {
  for (uint32_t r = 0; r < kStateRoleCount; ++r) {
    const auto role = static_cast<StateRole>(r);
    Draft d;
    const int64_t slot = d.AddState("s", role, Floats({3}, {1, 2, 3}));
    const uint32_t main = d.AddGraph("main"), writer = d.AddGraph("writer"),
                   middle = d.AddGraph("middle");
    const Type vector = Type::Tensor(DType::kF32, {3});
    for (const uint32_t callee : {writer, middle}) {
      Graph& g = d.module.graphs[callee];
      GraphBuilder b(&g);
      const ValueId x = g.AddInput("x", vector);
      if (callee == writer) {
        d.Write(&g, slot, x);
        g.outputs = {Must(b.Add("Neg", "minus", {x}))};
      } else {
        g.outputs = {
            (*b.Add("msrt", "Call", "again", {x}, {{"graph", GraphRef{writer}}}, 1, {vector}))[0]};
      }
    }
    Graph& g = d.module.graphs[main];
    GraphBuilder b(&g);
    const ValueId x = g.AddInput("x", vector);
    const ValueId before = d.Read(&g, slot, "before");
    const ValueId called =
        (*b.Add("msrt", "Call", "call", {x}, {{"graph", GraphRef{middle}}}, 1, {vector}))[0];
    const ValueId after = d.Read(&g, slot, "after");
    const ValueId sum = Must(b.Add("Add", "sum", {before, called}));
    g.outputs = {Must(b.Add("Add", "y", {sum, after}))};  // before - x + x
    d.module.entries = {main};
    CompileOptions options;
    options.passes.disabled = {"inline_calls"};
    const auto session = Make(Compiled(std::move(d.module), TestEnvironment(), options));
    EXPECT_EQ(RunOnce(session.get(), {Floats({3}, {7, 8, 9})}), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(RunOnce(session.get(), {Floats({3}, {4, 5, 6})}), (std::vector<float>{7, 8, 9}));
    EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{4, 5, 6})) << StateRoleName(role);
  }
}

// A graph that is called reads a parameter in place: nothing writes it while it is used.
TEST(State, CalledGraphReadsParametersInPlace) {
  Draft d;
  const int64_t slot = d.AddState("w", StateRole::kParameter, Floats({3}, {1, 2, 3}));
  const uint32_t main = d.AddGraph("main"), block = d.AddGraph("block");
  const Type vector = Type::Tensor(DType::kF32, {3});
  Graph& callee = d.module.graphs[block];
  const ValueId in = callee.AddInput("x", vector);
  callee.outputs = {Must(GraphBuilder(&callee).Add("Mul", "y", {in, d.Read(&callee, slot, "w")}))};
  Graph& g = d.module.graphs[main];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", vector);
  const auto call = [&](const char* name, ValueId v) {
    return (*b.Add("msrt", "Call", name, {v}, {{"graph", GraphRef{block}}}, 1, {vector}))[0];
  };
  const ValueId twice = call("second", call("first", x));
  d.Write(&g, slot, twice);
  g.outputs = {Must(b.Add("Neg", "minus", {twice}))};
  d.module.entries = {main};
  CompileOptions options;
  options.passes.disabled = {"inline_calls"};
  const auto model = Compiled(std::move(d.module), TestEnvironment(), options);
  const auto session = Make(model);
  bool found = false;
  for (const auto& placed : ProgramsOf(*model)) {
    for (const Step& step : placed->program->steps) {
      if (step.kind != StepKind::kStateRead) continue;
      EXPECT_EQ(step.access, StateAccess::kInPlace);
      found = true;
    }
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(RunOnce(session.get(), {Floats({3}, {1, 1, 1})}), (std::vector<float>{-1, -4, -9}));
  EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{1, 4, 9}));
}

// w = w * x + 1 in each iteration of a loop.
TEST(State, LoopBodyUpdatesInPlace) {
  Draft d;
  const int64_t slot = d.AddState("w", StateRole::kParameter, Floats({2}, {1, 2}));
  const uint32_t main = d.AddGraph("main"), body = d.AddGraph("body");
  const Type vector = Type::Tensor(DType::kF32, {2});
  {
    Graph& g = d.module.graphs[body];
    GraphBuilder b(&g);
    g.AddInput("iteration", Type::Tensor(DType::kI64, {}));
    const ValueId condition = g.AddInput("condition", Type::Tensor(DType::kBool, {})),
                  x = g.AddInput("x", vector), one = g.AddConstant("one", Floats({1}, {1}));
    const ValueId product = Must(b.Add("Mul", "product", {d.Read(&g, slot, "w"), x}));
    d.Write(&g, slot, Must(b.Add("Add", "updated", {product, one})));
    g.outputs = {Must(b.Add("Identity", "go_on", {condition}))};
  }
  Graph& g = d.module.graphs[main];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", vector),
                trips = g.AddConstant(
                    "trips", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{3}));
  EXPECT_TRUE(b.Add("", "Loop", "loop", {trips, kNoValue, x},
                    {{"body", GraphRef{body}}, {"carried", int64_t{0}}}, 0)
                  .ok());
  g.outputs = {d.Read(&g, slot, "after")};
  d.module.entries = {main};
  const auto session = Make(Compiled(std::move(d.module)));
  EXPECT_EQ(RunOnce(session.get(), {Floats({2}, {2, 3})}), (std::vector<float>{15, 67}));
  EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{15, 67}));
}

// A written value has its own size, which the reads after it see.
TEST(State, ReadAfterAWriteHasTheSizeThatWasWritten) {
  for (const StateRole role : {StateRole::kCache, StateRole::kParameter}) {
    Draft d;
    const int64_t slot = d.AddState("s", role, Floats({2}, {1, 2}));
    d.module.states[0].type = Type::Tensor(DType::kF32, {kUnknownDim});
    Graph& g = d.module.graphs[d.AddGraph("main")];
    GraphBuilder b(&g);
    const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {kUnknownDim}));
    d.Write(&g, slot, x);
    g.outputs = {Must(b.Add("Neg", "minus", {d.Read(&g, slot, "after")}))};
    d.module.entries = {0};
    const auto session = Make(Compiled(std::move(d.module)));
    EXPECT_EQ(RunOnce(session.get(), {Floats({4}, {1, 2, 3, 4})}),
              (std::vector<float>{-1, -2, -3, -4}));
    EXPECT_EQ(RunOnce(session.get(), {Floats({1}, {5})}), (std::vector<float>{-5}));
    EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{5}));
  }
}

// ---- failing runs -------------------------------------------------------------------------------

// Adds x to every slot, then fails if the new first slot has an element above 10.
Module FailingStep(std::vector<StateRole> roles) {
  Draft d;
  Graph& g = d.module.graphs[d.AddGraph("main")];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {2}));
  ValueId first = kNoValue;
  for (size_t i = 0; i < roles.size(); ++i) {
    const std::string name = StrCat("s", i);
    const int64_t slot = d.AddState(name.c_str(), roles[i], Floats({2}, {1, 2}));
    const ValueId sum =
        Must(b.Add("Add", StrCat(name, "_sum"), {d.Read(&g, slot, name.c_str()), x}));
    d.Write(&g, slot, sum);
    if (i == 0) first = sum;
  }
  const ValueId table = g.AddConstant("table", RampTensor({11}, 0)),
                index = (*b.Add("", "Cast", "index", {first}, {{"to", DType::kI64}}, 1))[0];
  g.outputs = {Must(b.Add("Gather", "y", {table, index}))};
  d.module.entries = {0};
  return std::move(d.module);
}

TEST(State, CachesAndStatisticsAreUnchangedAfterAFailedRun) {
  const auto session = Make(Compiled(FailingStep({StateRole::kCache, StateRole::kStatistic})));
  RunOnce(session.get(), {Floats({2}, {1, 1})});
  const auto failed = RunSession(*session, {Floats({2}, {50, 50})});
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(failed.status().message().find("mixture"), std::string::npos);
  for (size_t s = 0; s < 2; ++s) EXPECT_EQ(StateOf(*session, s), (std::vector<float>{2, 3})) << s;
  RunOnce(session.get(), {Floats({2}, {1, 1})});
  EXPECT_EQ(StateOf(*session, 1), (std::vector<float>{3, 4}));
}

TEST(State, FailedUpdateIsAMixtureUntilTheSlotsAreWrittenOrReset) {
  const auto session = Make(
      Compiled(FailingStep({StateRole::kParameter, StateRole::kOptimizer, StateRole::kCache})));
  RunOnce(session.get(), {Floats({2}, {1, 1})});
  const auto failed = RunSession(*session, {Floats({2}, {50, 50})});
  EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
  EXPECT_NE(failed.status().message().find("may now be a mixture"), std::string::npos)
      << failed.status().message();
  EXPECT_EQ(StateOf(*session, 2), (std::vector<float>{2, 3}));  // the cache
  const ConstTensor x = Floats({2}, {1, 1});
  const auto refused = RunSession(*session, {x});
  EXPECT_NE(refused.status().message().find("reset 's0' and 1 more"), std::string::npos)
      << refused.status().message();
  ASSERT_TRUE(session->ResetState(0).ok());
  EXPECT_NE(RunSession(*session, {x}).status().message().find("'s1'"), std::string::npos);
  const ConstTensor restored = Floats({2}, {2, 3});
  ASSERT_TRUE(
      session
          ->WriteState(
              1, {DType::kF32, {2}, Layout::kPlain, const_cast<std::byte*>(restored.bytes.data())})
          .ok());
  RunOnce(session.get(), {x});
  EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{2, 3}));
  EXPECT_EQ(StateOf(*session, 1), (std::vector<float>{3, 4}));
}

TEST(State, RunThatFailsBeforeItsFirstUpdateChangesNothing) {
  const auto session = Make(Compiled(FailingStep({StateRole::kParameter})));
  RunOnce(session.get(), {Floats({2}, {1, 1})});
  EXPECT_FALSE(RunSession(*session, {Floats({3}, {1, 1, 1})}).ok());  // another shape
  EXPECT_EQ(StateOf(*session, 0), (std::vector<float>{2, 3}));
  RunOnce(session.get(), {Floats({2}, {1, 1})});
}

// ---- cost of binding ----------------------------------------------------------------------------

// Milliseconds to bind a program that updates `slots` slots by nine steps each.
double BindMillis(int slots) {
  Draft d;
  Graph& g = d.module.graphs[d.AddGraph("main")];
  GraphBuilder b(&g);
  for (int i = 0; i < slots; ++i) {
    const std::string name = StrCat("s", i);
    const int64_t slot = d.AddState(name.c_str(), StateRole::kParameter, Floats({2}, {1, 2}));
    ValueId v = d.Read(&g, slot, name.c_str());
    for (int step = 0; step < 8; ++step)
      v = Must(b.Add(step % 2 == 0 ? "Tanh" : "Exp", StrCat(name, "_", step), {v}));
    d.Write(&g, slot, v);
  }
  d.module.entries = {0};
  const auto model = Compiled(std::move(d.module));
  const Program& program = *model->entries[0]->current()->program;
  EXPECT_GE(program.steps.size(), static_cast<size_t>(10 * slots));
  EXPECT_EQ(program.state_updates.size(), static_cast<size_t>(slots));
  BindRequest request;
  request.states.assign(static_cast<size_t>(slots), Type::Tensor(DType::kF32, {2}));
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const double begin = ThreadCpuMillis();
    EXPECT_TRUE(Bind(program, model->module, *model->environment->evaluator, request).ok());
    least = std::min(least, ThreadCpuMillis() - begin);
  }
  return least;
}

// Four times the steps and slots would take sixteen times as long if the work were quadratic.
TEST(State, BindingIsLinearInStepsAndSlots) {
  double ratio = 0;
  for (int retry = 0; retry < 5; ++retry) {
    const double small = BindMillis(125), large = BindMillis(500);
    ratio = large / small;
    std::printf("bind: %.2f ms for 1,250 steps, %.2f ms for 5,000\n", small, large);
    if (ratio < 8) break;
  }
  EXPECT_LT(ratio, 8);
}

}  // namespace
}  // namespace msrt
