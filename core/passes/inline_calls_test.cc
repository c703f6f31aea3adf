#include "core/passes/inline_calls.h"

#include "core/passes/flow_testing.h"
#include "core/passes/thread_steps.h"

namespace msrt::testing {
namespace {

// main(x, y) calls f(a, b) = (a - b, a) `times` times, each time with the results of the last call.
Module Calling(int times, bool small = true) {
  ModuleBuilder m(2);
  ValueId x = m.Input(0), y = m.Input(0);
  for (int i = 0; i < times; ++i) {
    const auto results =
        m.Control(0, "msrt", "Call", {x, y}, {{"graph", GraphRef{1}}}, {kNumber, kNumber});
    x = results[0];
    y = results[1];
  }
  m.Output(0, x);
  m.Output(0, y);
  const ValueId a = m.Input(1), b = m.Input(1);
  ValueId difference = m.Op(1, "Sub", {a, b});
  for (int i = 0; !small && i < 20; ++i) difference = m.Op(1, "Neg", {difference});
  m.Output(1, difference);
  m.Output(1, a);
  return m.module;
}
const std::vector<std::vector<ConstTensor>> kTwo = {{NumberOf(5), NumberOf(3)}};

TEST(InlineCalls, GraphWithOneCallIsInlined) {
  const Module after = AfterPass(InlineCalls, Calling(1, /*small=*/false), kTwo);
  // An argument that is returned unchanged needs a separate node, so that the output keeps its
  // name.
  EXPECT_EQ(OpsOf(after.main()).front(), "Sub");
  EXPECT_EQ(OpsOf(after.main()).back(), "Identity");
  EXPECT_EQ(after.main().nodes.size(), 22u);
}

TEST(InlineCalls, OnlySmallGraphsAreCopied) {
  EXPECT_EQ(OpsOf(AfterPass(InlineCalls, Calling(3), kTwo).main()), (OpNames{"Sub", "Sub", "Sub"}));
  AfterPass(InlineCalls, Calling(3, /*small=*/false), kTwo, /*changes=*/false);
}

TEST(InlineCalls, CopiesAreBounded) {
  Module module = Calling(3);
  CopyBudget none{0};
  const auto changed =
      InlineCalls({.evaluator = TestEnvironment()->evaluator, .copying = &none}, &module);
  EXPECT_TRUE(changed.ok() && !*changed);
}

TEST(InlineCalls, ChainsAreInlinedFromTheirEnd) {
  ModuleBuilder m(4);
  m.Output(0, m.Call(0, 1, {m.Input(0)}));
  for (const uint32_t g : {1u, 2u}) m.Output(g, m.Call(g, g + 1, {m.Op(g, "Neg", {m.Input(g)})}));
  m.Output(3, m.Op(3, "Abs", {m.Input(3)}));
  EXPECT_EQ(OpsOf(AfterPass(InlineCalls, m.module, {{NumberOf(7)}}).main()),
            (OpNames{"Neg", "Neg", "Abs"}));
}

TEST(InlineCalls, RecursionStays) {
  ModuleBuilder m(4);  // main calls f, f(n) = n < 1 ? n : f(n - 1)
  m.Output(0, m.Call(0, 1, {m.Input(0)}));
  const ValueId n = m.Input(1);
  m.Output(1, m.If(1, m.Op(1, "Less", {n, m.Number(1, 1)}), {n}, 2, 3));
  m.Output(2, m.Input(2));
  m.Output(3, m.Call(3, 1, {m.Op(3, "Sub", {m.Input(3), m.Number(3, 1)})}));
  AfterPass(InlineCalls, m.module, {{NumberOf(4)}}, /*changes=*/false);
}

TEST(InlineCalls, CallOfLocalFunctionBecomesCallOfGraph) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0), y = m.Input(0);
  const Type function = Type::Function({kNumber}, {kNumber});
  const ValueId bound =
      m.Control(0, "msrt", "Partial", {x}, {{"graph", GraphRef{1}}}, {function})[0];
  m.Output(0, m.Control(0, "msrt", "Call", {bound, y}, {}, {kNumber})[0]);
  m.Output(1, m.Op(1, "Sub", {m.Input(1), m.Input(1)}));
  EXPECT_EQ(OpsOf(AfterPass(InlineCalls, m.module, kTwo).main()), (OpNames{"msrt.Partial", "Sub"}));
}

TEST(InlineCalls, CallThatChecksItsArgumentStays) {
  ModuleBuilder m(2);  // the callee declares more precise dims than the caller knows
  const Type open = Type::Tensor(DType::kI64, {kUnknownDim}),
             three = Type::Tensor(DType::kI64, {3});
  m.Output(0,
           m.Control(0, "msrt", "Call", {m.Input(0, open)}, {{"graph", GraphRef{1}}}, {three})[0]);
  m.Output(1, m.Op(1, "Neg", {m.Input(1, three)}));
  const std::vector<int64_t> numbers = {1, 2, 3};
  AfterPass(InlineCalls, m.module, {{ConstTensor::Int64s(numbers)}}, /*changes=*/false);
}

TEST(InlineCalls, StateAndRandomNumbersStayInOrder) {
  ModuleBuilder m(2);
  m.module.states.push_back({"count", kNumber, NumberOf(1)});
  const AttrList read = {
      {"slot", int64_t{0}}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}};
  const ValueId before = m.Control(0, "msrt", "StateRead", {}, read, {kNumber})[0];
  const auto results = m.Control(0, "msrt", "Call", {before}, {{"graph", GraphRef{1}}},
                                 {Type::Tensor(DType::kF32, {2})});
  m.Output(0, m.Control(0, "msrt", "StateRead", {}, read, {kNumber})[0]);
  m.Output(0, results[0]);
  m.Control(1, "msrt", "StateWrite", {m.Op(1, "Add", {m.Input(1), m.Number(1, 4)})},
            {{"slot", int64_t{0}}}, {});
  m.Output(1, m.Op(1, "RandomUniform", {}, {{"shape", std::vector<int64_t>{2}}}));
  ASSERT_TRUE(Validate(&m.module).ok() && ThreadSteps(&m.module).ok());
  // The first and the last nodes read and count the steps.
  EXPECT_EQ(
      OpsOf(AfterPass(InlineCalls, m.module, {{}}).main()),
      (OpNames{"msrt.StateRead", "msrt.StateRead", "msrt.DeriveStep", "Add", "msrt.StateWrite",
               "RandomUniform", "msrt.StateRead", "Add", "msrt.StateWrite"}));
}

// Inlining g3 shows that g2 adds three numbers to two, which must not fail unless g2 runs.
TEST(InlineCalls, InliningThatInvalidatesTheModelIsUndone) {
  ModuleBuilder m(4);
  const Type three = Type::Tensor(DType::kI64, {3}),
             open = Type::Tensor(DType::kI64, {kUnknownDim});
  const ValueId c = m.Input(0, kFlag), x = m.Input(0, three);
  m.Output(0, m.Control(0, "", "If", {c, x},
                        {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {open})[0]);
  m.Output(1, m.Op(1, "Neg", {m.Input(1, three)}));
  const std::vector<int64_t> two = {1, 2}, numbers = {1, 2, 3};
  const ValueId same =
      m.Control(2, "msrt", "Call", {m.Input(2, three)}, {{"graph", GraphRef{3}}}, {open})[0];
  m.Output(2,
           m.Op(2, "Add", {same, m.module.graphs[2].AddConstant("two", ConstTensor::Int64s(two))}));
  m.Output(3, m.Input(3, open));
  for (const bool validate : {true, false}) {
    CompileOptions options;
    options.passes.validate = validate;
    const auto model = CompileModule(TestEnvironment(), m.module, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto session = Session::Create(*model, 0, {});
    ASSERT_TRUE(session.ok());
    const auto outputs = RunSession(**session, {FlagOf(true), ConstTensor::Int64s(numbers)});
    ASSERT_TRUE(outputs.ok()) << outputs.status().message();
    EXPECT_EQ((*outputs)[0].As<int64_t>()[2], -3);
    EXPECT_FALSE(RunSession(**session, {FlagOf(false), ConstTensor::Int64s(numbers)}).ok());
  }
}

}  // namespace
}  // namespace msrt::testing
