#include "core/passes/thread_steps.h"

#include "core/model/load.h"
#include "core/model/write.h"
#include "core/passes/flow_testing.h"
#include "core/passes/merge_common.h"

namespace msrt::testing {
namespace {

const Type kFour = Type::Tensor(DType::kF32, {4});

ValueId Draw(ModuleBuilder* m, uint32_t g, AttrList attrs = {}) {
  attrs.Set("shape", std::vector<int64_t>{4});
  return m->Op(g, "RandomUniform", {}, std::move(attrs));
}

std::vector<std::vector<float>> Values(const std::vector<ConstTensor>& outputs) {
  std::vector<std::vector<float>> values;
  for (const ConstTensor& t : outputs)
    values.emplace_back(t.As<float>().begin(), t.As<float>().end());
  return values;
}

// The outputs of the first run. Expects the same with all passes and with none.
std::vector<std::vector<float>> FirstRun(const Module& module,
                                         const std::vector<ConstTensor>& inputs = {}) {
  const auto plain = RunModule(module, inputs, {"reference"}, {"all"}),
             optimised = RunModule(module, inputs);
  EXPECT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_TRUE(optimised.ok()) << optimised.status().message();
  if (!plain.ok() || !optimised.ok()) return {};
  EXPECT_EQ(Values(*optimised), Values(*plain));
  return Values(*plain);
}

std::unique_ptr<Session> SessionOf(Module module) {
  auto model = CompileModule(TestEnvironment(), std::move(module), {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *Session::Create(*model, 0, {}) : nullptr;
}

std::vector<std::vector<float>> RunOnce(Session& session) {
  const auto outputs = RunSession(session, {});
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? Values(*outputs) : std::vector<std::vector<float>>();
}

// Draws twice, the second time with the given attributes.
Module TwoDraws(AttrList second = {}) {
  ModuleBuilder m(1);
  m.Output(0, Draw(&m, 0));
  m.Output(0, Draw(&m, 0, std::move(second)));
  return m.module;
}

TEST(ThreadSteps, RunsDifferAndResetRepeatsThem) {
  for (const bool seeded : {false, true}) {
    const auto session = SessionOf(TwoDraws(seeded ? AttrList{{"seed", 3.0}} : AttrList{}));
    ASSERT_NE(session, nullptr);
    const auto first = RunOnce(*session), second = RunOnce(*session), third = RunOnce(*session);
    EXPECT_NE(first, second);
    EXPECT_NE(second, third);
    EXPECT_NE(first[0], first[1]);
    ASSERT_TRUE(session->ResetState(0).ok());
    EXPECT_EQ(RunOnce(*session), first);
    EXPECT_EQ(RunOnce(*session), second);
    int64_t step = 2;  // as training that is resumed
    ASSERT_TRUE(session->WriteState(0, {DType::kI64, {}, Layout::kPlain, &step}).ok());
    EXPECT_EQ(RunOnce(*session), third);
    const auto copy = session->Clone();
    ASSERT_TRUE(copy.ok());
    EXPECT_EQ(RunOnce(**copy), RunOnce(*session));
  }
}

TEST(ThreadSteps, SessionsOfOneModelRepeat) {
  EXPECT_EQ(RunOnce(*SessionOf(TwoDraws())), RunOnce(*SessionOf(TwoDraws())));
}

TEST(ThreadSteps, FailedRunDrawsAgain) {
  ModuleBuilder m(1);  // fails for an index out of range
  const ValueId index = m.Input(0);
  m.Output(0, m.Op(0, "Gather", {Draw(&m, 0), index}));
  const auto session = SessionOf(m.module);
  ASSERT_NE(session, nullptr);
  ASSERT_FALSE(RunSession(*session, {NumberOf(9)}).ok());
  const auto first = RunSession(*session, {NumberOf(1)}),
             second = RunSession(*session, {NumberOf(1)});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Values(*first), FirstRun(m.module, {NumberOf(1)}));
  EXPECT_NE(Values(*first), Values(*second));
}

TEST(ThreadSteps, NodesWithOneStreamDrawAlike) {
  const auto same = FirstRun(TwoDraws({{"stream", int64_t{0}}}));
  // The first node has no stream and gets one that is free.
  EXPECT_NE(same[0], same[1]);
  Module copied = TwoDraws();
  ASSERT_TRUE(Validate(&copied).ok());
  Graph& graph = copied.graphs[0];
  graph.nodes[1].attrs = graph.nodes[0].attrs;  // computed again, under another name
  const auto again = FirstRun(copied);
  EXPECT_EQ(again[0], again[1]);
}

TEST(ThreadSteps, StreamsAreSmallestFreeNumbers) {
  ModuleBuilder m(1);
  for (const int64_t stream : {-1, 0, -1, 2})
    m.Output(0, Draw(&m, 0, stream < 0 ? AttrList{} : AttrList{{"stream", stream}}));
  ASSERT_TRUE(Validate(&m.module).ok());
  std::vector<int64_t> streams;
  for (const Node& n : m.module.graphs[0].nodes)
    streams.push_back(std::get<int64_t>(*n.attrs.Find("stream")));
  EXPECT_EQ(streams, (std::vector<int64_t>{1, 0, 3, 2}));
}

TEST(ThreadSteps, FileKeepsStreamsAndSteps) {
  for (const bool threaded : {false, true}) {
    Module module = TwoDraws();
    ASSERT_TRUE(Validate(&module).ok());
    const auto before = FirstRun(module);
    ASSERT_TRUE(!threaded || ThreadSteps(&module).ok());
    std::swap(module.graphs[0].nodes[threaded ? 1 : 0].name, module.name);  // names do not count
    const auto file = SerializeModel(module);
    ASSERT_TRUE(file.ok()) << file.status().message();
    auto loaded = Load(Bytes{*file, nullptr});
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(FirstRun(*loaded), before) << Print(*loaded);
  }
}

TEST(ThreadSteps, SecondApplicationChangesNothing) {
  Module module = TwoDraws();
  ASSERT_TRUE(Validate(&module).ok() && ThreadSteps(&module).ok());
  const std::string once = Print(module);
  ASSERT_TRUE(ThreadSteps(&module).ok());
  EXPECT_EQ(Print(module), once);
  ASSERT_TRUE(Validate(&module).ok());
  EXPECT_EQ(Print(module), once);
}

TEST(ThreadSteps, CallsDiffer) {
  ModuleBuilder m(2);
  const auto call = [&] {
    return m.Control(0, "msrt", "Call", {}, {{"graph", GraphRef{1}}}, {kFour})[0];
  };
  for (int i = 0; i < 3; ++i) m.Output(0, i == 2 ? Draw(&m, 0) : call());
  m.Output(1, Draw(&m, 1));
  const auto drawn = FirstRun(m.module);
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_NE(drawn[1], drawn[2]);
  EXPECT_NE(drawn[0], drawn[2]);
}

TEST(ThreadSteps, BranchesDrawAnew) {
  ModuleBuilder m(3);
  const ValueId condition = m.Input(0, kFlag);
  for (int i = 0; i < 2; ++i) {
    m.Output(0,
             m.Control(0, "", "If", {condition},
                       {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {kFour})[0]);
  }
  m.Output(1, Draw(&m, 1));
  const std::vector<float> fixed = {1, 2, 3, 4};
  m.Output(2, m.module.graphs[2].AddConstant("fixed", ConstTensor::Floats({4}, fixed)));
  const auto drawn = FirstRun(m.module, {FlagOf(true)});
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_EQ(FirstRun(m.module, {FlagOf(false)})[0], fixed);
}

// Rows that differ from each other, one for each iteration.
void ExpectRowsDiffer(const std::vector<float>& rows, size_t count) {
  ASSERT_EQ(rows.size(), count * 4);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < i; ++j)
      EXPECT_FALSE(std::equal(&rows[i * 4], &rows[i * 4] + 4, &rows[j * 4])) << i << " " << j;
  }
}

TEST(ThreadSteps, IterationsOfLoopDiffer) {
  for (const bool unrolled : {false, true}) {
    ModuleBuilder m(2);
    const ValueId trips = unrolled ? m.Number(0, 3) : m.Input(0);
    const auto results = m.Control(0, "", "Loop", {trips, kNoValue, m.Number(0, 5)},
                                   {{"body", GraphRef{1}}, {"carried", int64_t{1}}},
                                   {kNumber, Type::Tensor(DType::kF32, {kUnknownDim, 4})});
    m.Output(0, results[1]);
    m.Output(0, Draw(&m, 0));
    m.Input(1);
    m.Output(1, m.Input(1, kFlag));
    m.Output(1, m.Op(1, "Add", {m.Input(1), m.Number(1, 1)}));
    m.Output(1, Draw(&m, 1));
    const auto drawn = unrolled ? FirstRun(m.module) : FirstRun(m.module, {NumberOf(3)});
    ExpectRowsDiffer(drawn[0], 3);
  }
}

TEST(ThreadSteps, IterationsOfScanDiffer) {
  ModuleBuilder m(2);
  const ValueId xs = m.Input(0, Type::Tensor(DType::kF32, {3, 4}));
  m.Output(0, m.Control(
                  0, "", "Scan", {xs},
                  {{"body", GraphRef{1}}, {"carried", int64_t{0}}, {"num_scan_inputs", int64_t{1}}},
                  {Type::Tensor(DType::kF32, {3, 4})})[0]);
  m.Output(1, m.Op(1, "Bernoulli", {m.Input(1, kFour)}));
  const std::vector<float> even(12, 0.5f);
  const auto first = FirstRun(m.module, {ConstTensor::Floats({3, 4}, even)});
  EXPECT_FALSE(std::equal(&first[0][0], &first[0][4], &first[0][4]) &&
               std::equal(&first[0][0], &first[0][4], &first[0][8]));
}

TEST(ThreadSteps, IterationsOfWhileDiffer) {
  ModuleBuilder m(3);
  const ValueId start = m.Input(0);
  const ValueId zeros =
      m.module.graphs[0].AddConstant("zeros", ConstTensor::Floats({2, 4}, std::vector<float>(8)));
  const Type pair = Type::Tensor(DType::kF32, {2, 4});
  m.Output(0, m.While(0, {start, zeros}, 1, 2, {kNumber, pair})[1]);
  const ValueId i = m.Input(1);
  m.Input(1, pair);
  m.Output(1, m.Op(1, "Less", {i, m.Number(1, 2)}));
  const ValueId j = m.Input(2), rows = m.Input(2, pair);
  m.Output(2, m.Op(2, "Add", {j, m.Number(2, 1)}));
  // The newest row first.
  const ValueId drawn = m.Op(2, "Unsqueeze", {Draw(&m, 2)}, {{"axes", std::vector<int64_t>{0}}});
  const ValueId last = m.Op(2, "Slice", {rows},
                            {{"starts", std::vector<int64_t>{0}},
                             {"ends", std::vector<int64_t>{1}},
                             {"axes", std::vector<int64_t>{0}}});
  m.Output(2, m.Op(2, "Concat", {drawn, last}, {{"axis", int64_t{0}}}));
  ExpectRowsDiffer(FirstRun(m.module, {NumberOf(0)})[0], 2);
}

TEST(ThreadSteps, LevelsOfRecursionDiffer) {
  ModuleBuilder m(4);  // f(n, x) = n < 1 ? x : f(n - 1, draw - x)
  const auto call = [&](uint32_t g, ValueId n, ValueId x) {
    return m.Control(g, "msrt", "Call", {n, x}, {{"graph", GraphRef{1}}}, {kFour})[0];
  };
  m.Output(0, call(0, m.Input(0),
                   m.module.graphs[0].AddConstant(
                       "zeros", ConstTensor::Floats({4}, std::vector<float>(4)))));
  const ValueId n = m.Input(1), x = m.Input(1, kFour);
  m.Output(1, m.Control(1, "", "If", {m.Op(1, "Less", {n, m.Number(1, 1)}), n, x},
                        {{"then_branch", GraphRef{2}}, {"else_branch", GraphRef{3}}}, {kFour})[0]);
  m.Input(2);
  m.Output(2, m.Input(2, kFour));
  const ValueId rest = m.Op(3, "Sub", {m.Input(3), m.Number(3, 1)});
  m.Output(3, call(3, rest, m.Op(3, "Sub", {Draw(&m, 3), m.Input(3, kFour)})));
  // Equal draws at both levels would leave zeros.
  EXPECT_NE(FirstRun(m.module, {NumberOf(2)})[0], std::vector<float>(4));
}

TEST(ThreadSteps, CallsOfFunctionValueDiffer) {
  ModuleBuilder m(4);  // the condition chooses a function, which is called twice
  const Type function = Type::Function({kFour}, {kFour});
  const std::vector<float> ones(4, 1);
  const ValueId one = m.module.graphs[0].AddConstant("ones", ConstTensor::Floats({4}, ones));
  const ValueId f =
      m.Control(0, "", "If", {m.Input(0, kFlag)},
                {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {function})[0];
  for (int i = 0; i < 2; ++i) m.Output(0, m.Control(0, "msrt", "Call", {f, one}, {}, {kFour})[0]);
  for (const uint32_t g : {1u, 2u}) {
    m.Output(g, m.Control(g, "msrt", "Partial", {m.Number(g, g)}, {{"graph", GraphRef{3}}},
                          {function})[0]);
  }
  m.Input(3);
  m.Output(3, m.Op(3, "Mul", {Draw(&m, 3), m.Input(3, kFour)}));
  const auto drawn = FirstRun(m.module, {FlagOf(true)});
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(ThreadSteps, EntryThatIsCalledKeepsItsSignature) {
  ModuleBuilder m(2);
  m.module.entries = {0, 1};
  m.Output(0,
           m.Control(0, "msrt", "Call", {m.Input(0, kFour)}, {{"graph", GraphRef{1}}}, {kFour})[0]);
  m.Output(1, m.Op(1, "Add", {m.Input(1, kFour), Draw(&m, 1)}));
  ASSERT_TRUE(Validate(&m.module).ok() && ThreadSteps(&m.module).ok());
  ASSERT_TRUE(Validate(&m.module).ok()) << Validate(&m.module).message();
  const Graph& entry = m.module.graphs[m.module.entries[1]];
  EXPECT_EQ(entry.name, "g1");
  EXPECT_EQ(entry.inputs.size(), 1u);
  const std::vector<ConstTensor> zeros = {ConstTensor::Floats({4}, std::vector<float>(4))};
  const auto model = CompileModule(TestEnvironment(), m.module, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  for (const size_t e : {0u, 1u}) {
    auto session = Session::Create(*model, e, {});
    const auto first = RunSession(**session, zeros), second = RunSession(**session, zeros);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_NE(Values(*first), Values(*second));
  }
}

TEST(ThreadSteps, BodyThatIsAlsoCalledIsRefused) {
  ModuleBuilder m(3);
  const ValueId start = m.Input(0);
  m.Output(0, m.While(0, {start}, 1, 2));
  m.Output(0, m.Call(0, 2, {start}));
  m.Output(1, m.Op(1, "Less", {m.Input(1), m.Number(1, 2)}));
  const ValueId flip =
      m.Op(2, "Cast", {m.Op(2, "ReduceSum", {Draw(&m, 2)}, {{"keepdims", int64_t{0}}})},
           {{"to", DType::kI64}});
  m.Output(2, m.Op(2, "Add", {m.Input(2), flip}));
  ASSERT_TRUE(Validate(&m.module).ok());
  const Status status = ThreadSteps(&m.module);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("graph 2 'g2' draws random numbers"), std::string::npos)
      << status.message();
}

TEST(ThreadSteps, ModelMayCountItself) {
  ModuleBuilder m(1);
  m.module.states.push_back({std::string(kStepSlot), kNumber, NumberOf(10)});
  m.Output(0, Draw(&m, 0));
  GraphBuilder builder(&m.module.graphs[0]);
  const ValueId counter = m.Input(0);
  ASSERT_TRUE(
      builder.Add("msrt", "StateWrite", "count", {counter}, {{"slot", int64_t{0}}}, 0).ok());
  const auto session = SessionOf(m.module);
  ASSERT_NE(session, nullptr);
  const auto run = [&](int64_t next) { return Values(*RunSession(*session, {NumberOf(next)})); };
  const auto at10 = run(7), at7 = run(10), again = run(0);
  EXPECT_NE(at10, at7);
  EXPECT_EQ(at10, again);
}

TEST(ThreadSteps, SlotOfAnotherTypeIsRefused) {
  ModuleBuilder m(1);
  m.module.states.push_back({std::string(kStepSlot), kFlag, FlagOf(true)});
  m.Output(0, Draw(&m, 0));
  ASSERT_TRUE(Validate(&m.module).ok());
  const Status status = ThreadSteps(&m.module);
  EXPECT_EQ(status.code(), Code::kInvalidModel);
  EXPECT_NE(status.message().find("state 'msrt.step' is bool[]"), std::string::npos)
      << status.message();
}

TEST(ThreadSteps, NodeKeepsItsOwnStep) {
  ModuleBuilder m(1);
  const ValueId step = m.Input(0);
  m.Output(0, m.Op(0, "RandomNormal", {step}, {{"shape", std::vector<int64_t>{4}}}));
  const auto session = SessionOf(m.module);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->model().module.states.size(), 0u);
  const auto run = [&](int64_t s) { return Values(*RunSession(*session, {NumberOf(s)})); };
  const auto at1 = run(1), at2 = run(2), again = run(1);
  EXPECT_NE(at1, at2);
  EXPECT_EQ(at1, again);
}

TEST(ThreadSteps, OnlyEqualDrawsAreMerged) {
  ModuleBuilder m(1);
  const ValueId step = m.Input(0);
  const auto draw = [&](int64_t stream) {
    return m.Op(0, "RandomNormal", {step},
                {{"shape", std::vector<int64_t>{4}}, {"stream", stream}});
  };
  const ValueId sum = m.Op(0, "Add", {draw(0), draw(0)});
  m.Output(0, m.Op(0, "Sub", {sum, draw(1)}));
  ASSERT_TRUE(Validate(&m.module).ok());
  const auto before = FirstRun(m.module, {NumberOf(3)});
  ASSERT_TRUE(MergeCommon({}, &m.module.graphs[0]).ok());
  EXPECT_EQ(OpsOf(m.module.main()), (OpNames{"RandomNormal", "Add", "RandomNormal", "Sub"}));
  EXPECT_EQ(FirstRun(m.module, {NumberOf(3)}), before);
}

TEST(ThreadSteps, DropoutOutsideTrainingDrawsNothing) {
  ModuleBuilder m(1);
  const ValueId x = m.Op(0, "Neg", {m.Input(0, kFour)});
  m.Output(0, m.Op(0, "Abs", {m.Op(0, "Dropout", {x})}));
  const auto model = CompileModule(TestEnvironment(), m.module, {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ((*model)->module.states.size(), 0u);
  EXPECT_EQ(OpsOf((*model)->module.main()), (OpNames{"Neg", "Abs"}));
}

}  // namespace
}  // namespace msrt::testing
