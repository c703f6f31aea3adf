#include "core/run/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "delegates/builtin.h"
#include "ops/builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

using testing::RunSession;
using testing::TestEnvironment;

ConstTensor Floats(Dims dims, std::vector<float> values) {
  return ConstTensor::Floats(dims, values);
}
std::vector<float> ValuesOf(const ConstTensor& t) {
  return {t.As<float>().begin(), t.As<float>().end()};
}

Module EmptyModule() {
  Module module;
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  return module;
}

ValueId Must(Result<ValueId> v) {
  EXPECT_TRUE(v.ok()) << v.status().message();
  return v.ok() ? *v : kNoValue;
}

Result<std::unique_ptr<Session>> SessionOf(Module module, const SessionOptions& options = {},
                                           std::shared_ptr<Environment> env = TestEnvironment()) {
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(std::move(env), std::move(module), {}));
  return Session::Create(std::move(model), 0, options);
}

// y = relu(x + 1) * x with an open first dim.
Module SmallModule() {
  Module module = EmptyModule();
  const int64_t n = module.SymbolFor("n");
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {n, 3}));
  const ValueId one = g.AddConstant("one", Floats({1}, {1}));
  const ValueId sum = Must(b.Add("Add", "sum", {x, one}));
  const ValueId y = Must(b.Add("Mul", "y", {Must(b.Add("Relu", "relu", {sum})), x}));
  g.outputs = {y};
  return module;
}

TEST(Session, ShapeErrorsNameSymbols) {
  Module module = SmallModule();
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId mask = g.AddInput("mask", Type::Tensor(DType::kF32, {module.SymbolFor("n"), 3}));
  g.outputs = {Must(b.Add("Mul", "masked", {g.outputs[0], mask}))};
  auto session = SessionOf(std::move(module));
  ASSERT_TRUE(session.ok()) << session.status().message();
  const auto message = [&](Dims x, Dims other) {
    const std::vector<float> a(static_cast<size_t>(x.elements())),
        c(static_cast<size_t>(other.elements()));
    return RunSession(**session, {Floats(x, a), Floats(other, c)}).status().message();
  };
  EXPECT_NE(message({2, 4}, {2, 3}).find("the model wants f32[n, 3]: dim 1 must be 3"),
            std::string::npos)
      << message({2, 4}, {2, 3});
  EXPECT_NE(message({2, 3}, {5, 3}).find("dim 0 is 5, but 'n' is 2"), std::string::npos)
      << message({2, 3}, {5, 3});
}

TEST(Session, RunsAtAnyShape) {
  auto session = SessionOf(SmallModule());
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (int64_t rows : {1, 4, 0, 1000, 2}) {
    std::vector<float> x(static_cast<size_t>(rows) * 3), expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i) - 2;
      expected[i] = std::max(x[i] + 1, 0.0f) * x[i];
    }
    auto out = RunSession(**session, {Floats({rows, 3}, x)});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ(ValuesOf((*out)[0]), expected);
  }
}

TEST(Session, WrongInputsAreNamed) {
  auto session = SessionOf(SmallModule());
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->Run({}).code(), Code::kInvalidArgument);  // not set
  const auto wrong_dims = RunSession(**session, {Floats({2, 4}, std::vector<float>(8))});
  EXPECT_EQ(wrong_dims.status().code(), Code::kInvalidArgument);
  EXPECT_NE(wrong_dims.status().message().find("'x'"), std::string::npos)
      << wrong_dims.status().message();
  EXPECT_NE(wrong_dims.status().message().find("dim 1 must be 3"), std::string::npos)
      << wrong_dims.status().message();
  const std::vector<int32_t> ints(3);
  const auto wrong_type =
      RunSession(**session, {ConstTensor::Of<int32_t>(DType::kI32, {1, 3}, ints)});
  EXPECT_NE(wrong_type.status().message().find("i32"), std::string::npos);
  EXPECT_FALSE((*session)->Output(0).ok());
  // Dims that are known from an earlier run do not make a wrong type right.
  ASSERT_TRUE(RunSession(**session, {Floats({1, 3}, {1, 2, 3})}).ok());
  EXPECT_FALSE(RunSession(**session, {ConstTensor::Of<int32_t>(DType::kI32, {1, 3}, ints)}).ok());
}

TEST(Session, OutputsGoToBoundMemory) {
  auto session = SessionOf(SmallModule());
  ASSERT_TRUE(session.ok());
  std::vector<float> memory(6, -1);
  ASSERT_TRUE(
      (*session)->SetOutput(0, {DType::kF32, {2, 3}, Layout::kPlain, memory.data()}, nullptr).ok());
  ASSERT_TRUE(RunSession(**session, {Floats({2, 3}, {1, 1, 1, 1, 1, 1})}).ok());
  EXPECT_EQ(memory, std::vector<float>(6, 2));
  const auto too_small = RunSession(**session, {Floats({3, 3}, std::vector<float>(9))});
  EXPECT_EQ(too_small.status().code(), Code::kInvalidArgument);
}

TEST(Session, MemoryCapIsEnforced) {
  auto session = SessionOf(SmallModule(), {.memory_cap_bytes = 100000});
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(RunSession(**session, {Floats({100, 3}, std::vector<float>(300))}).ok());
  const auto big = RunSession(**session, {Floats({100000, 3}, std::vector<float>(300000))});
  EXPECT_EQ(big.status().code(), Code::kLimitExceeded) << big.status().message();
  EXPECT_TRUE(RunSession(**session, {Floats({100, 3}, std::vector<float>(300))}).ok());
}

TEST(Session, DeadlineStopsARunAndIdleCancelDoesNothing) {
  class Jumping final : public Clock {
   public:
    int64_t NowNanos() override { return now += 1000; }
    int64_t now = 0;
  } clock;
  auto env = TestEnvironment();
  env->clock = &clock;
  auto session = SessionOf(SmallModule(), {}, env);
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(RunSession(**session, {Floats({1, 3}, {1, 2, 3})}).ok());
  EXPECT_EQ((*session)->Run({.deadline_nanos = 1}).code(), Code::kDeadlineExceeded);
  EXPECT_EQ((*session)->Run({.deadline_nanos = INT64_MAX}).code(), Code::kOk);
  (*session)->Cancel();  // without a run it does nothing
  EXPECT_TRUE((*session)->Run({}).ok());
}

// counter += x, returned before and after.
Module CounterModule() {
  Module module = EmptyModule();
  module.states.push_back({"counter", Type::Tensor(DType::kF32, {2}), Floats({2}, {10, 20})});
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {2}));
  const AttrList read{
      {"slot", int64_t{0}}, {"dtype", DType::kF32}, {"dims", std::vector<int64_t>{2}}};
  const ValueId before = (*b.Add("msrt", "StateRead", "before", {}, read, 1))[0];
  const ValueId sum = Must(b.Add("Add", "sum", {before, x}));
  EXPECT_TRUE(b.Add("msrt", "StateWrite", "write", {sum}, {{"slot", int64_t{0}}}, 0).ok());
  const ValueId after = (*b.Add("msrt", "StateRead", "after", {}, read, 1))[0];
  const ValueId old = Must(b.Add("Identity", "old", {before}));
  g.outputs = {old, after};
  return module;
}

TEST(Session, StateOutlivesRunsAndCloneCopiesIt) {
  auto session = SessionOf(CounterModule());
  ASSERT_TRUE(session.ok()) << session.status().message();
  auto first = RunSession(**session, {Floats({2}, {1, 2})});
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(ValuesOf((*first)[0]), (std::vector<float>{10, 20}));
  EXPECT_EQ(ValuesOf((*first)[1]), (std::vector<float>{11, 22}));
  auto clone = (*session)->Clone();
  ASSERT_TRUE(clone.ok());
  auto second = RunSession(**session, {Floats({2}, {1, 2})});
  EXPECT_EQ(ValuesOf((*second)[1]), (std::vector<float>{12, 24}));
  auto other = RunSession(**clone, {Floats({2}, {100, 100})});
  EXPECT_EQ(ValuesOf((*other)[1]), (std::vector<float>{111, 122}));
  ASSERT_TRUE((*session)->ResetState(0).ok());
  auto reset = RunSession(**session, {Floats({2}, {0, 0})});
  EXPECT_EQ(ValuesOf((*reset)[0]), (std::vector<float>{10, 20}));
}

// The target of the Reshape is an input: its size is known only when the data is.
TEST(Session, RunsSizesThatDependOnData) {
  Module module = EmptyModule();
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {kUnknownDim}));
  const ValueId shape = g.AddInput("shape", Type::Tensor(DType::kI64, {2}));
  const ValueId relu = Must(b.Add("Relu", "relu", {x}));
  const ValueId reshaped = Must(b.Add("Reshape", "reshaped", {relu, shape}));
  g.outputs = {Must(b.Add("Transpose", "y", {reshaped}, {{"perm", std::vector<int64_t>{1, 0}}}))};
  auto session = SessionOf(std::move(module));
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{2, 3}, {3, 2}, {1, 6}}) {
    auto out = RunSession(**session, {Floats({6}, {0, 1, 2, 3, 4, 5}),
                                      ConstTensor::Int64s(std::vector<int64_t>{rows, columns})});
    ASSERT_TRUE(out.ok()) << out.status().message();
    EXPECT_EQ((*out)[0].dims, (Dims{columns, rows}));
    EXPECT_EQ((*out)[0].As<float>()[static_cast<size_t>(rows - 1)],
              static_cast<float>((rows - 1) * columns));
  }
}

TEST(Session, OutputMayBeAnInputAConstantOrRepeated) {
  Module module = EmptyModule();
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {2}));
  const ValueId c = g.AddConstant("c", Floats({2}, {7, 8}));
  const ValueId flat = Must(b.Add("Unsqueeze", "flat", {x}, {{"axes", std::vector<int64_t>{0}}}));
  const ValueId y = Must(b.Add("Neg", "y", {x}));
  g.outputs = {x, c, flat, y, y};
  auto session = SessionOf(std::move(module));
  ASSERT_TRUE(session.ok()) << session.status().message();
  auto out = RunSession(**session, {Floats({2}, {1, 2})});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(ValuesOf((*out)[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(ValuesOf((*out)[1]), (std::vector<float>{7, 8}));
  EXPECT_EQ((*out)[2].dims, (Dims{1, 2}));
  EXPECT_EQ(ValuesOf((*out)[3]), ValuesOf((*out)[4]));
}

// A product of (rows x 64) and (64 x 64).
Module ProductModule(int64_t rows) {
  Module module = EmptyModule();
  Graph& g = module.graphs[0];
  GraphBuilder b(&g);
  const ValueId x =
      g.AddInput("x", Type::Tensor(DType::kF32, {rows == 0 ? module.SymbolFor("n") : rows, 64}));
  g.outputs = {
      Must(b.Add("MatMul", "y",
                 {x, g.AddConstant("w", Floats({64, 64}, std::vector<float>(64 * 64, 0.5f)))}))};
  return module;
}

TEST(Session, SmallModelRunsOnTheCallingThread) {
  const auto threads_of = [](int64_t rows, std::shared_ptr<Environment> env,
                             const CompileOptions& options = {}) {
    auto model = CompileModule(std::move(env), ProductModule(rows), options);
    return model.ok() ? (*model)->parallel->threads() : 0;
  };
  EXPECT_EQ(threads_of(1, testing::UserEnvironment()), 1);
  EXPECT_EQ(threads_of(100000, testing::UserEnvironment()), 2);
  EXPECT_EQ(threads_of(0, testing::UserEnvironment()), 2) << "any number of rows may come";
  CompileOptions one_row;
  one_row.typical = {{"x", {1, 64}}};
  EXPECT_EQ(threads_of(0, testing::UserEnvironment(), one_row), 1);
  EXPECT_EQ(threads_of(1, TestEnvironment()), 2) << "it was forbidden";

  const std::vector<float> x(64, 1.0f);
  for (const auto& env : {testing::UserEnvironment(), TestEnvironment()}) {
    auto session = SessionOf(ProductModule(1), {}, env);
    ASSERT_TRUE(session.ok());
    auto out = RunSession(**session, {Floats({1, 64}, x)});
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(ValuesOf((*out)[0]), std::vector<float>(64, 32.0f));
  }
}

TEST(Session, ManySessionsOfOneModelAgree) {
  auto model = CompileModule(TestEnvironment(), SmallModule(), {});
  ASSERT_TRUE(model.ok());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto session = Session::Create(*model, 0, {});
      for (int64_t i = 1; i < 50; ++i) {
        const std::vector<float> x(static_cast<size_t>(i) * 3, static_cast<float>(t));
        auto out = RunSession(**session, {Floats({i, 3}, x)});
        if (!out.ok() || (*out)[0].As<float>()[0] != static_cast<float>((t + 1) * t)) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace msrt
