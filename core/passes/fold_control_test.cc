#include "core/passes/fold_control.h"

#include "core/passes/flow_testing.h"

namespace msrt::testing {
namespace {

// Returns the graphs that the Calls of `graph` call.
std::vector<uint32_t> CallsOf(const Graph& graph) {
  std::vector<uint32_t> called;
  for (const Node& node : graph.nodes) {
    if (node.op == "Call") called.push_back(std::get<GraphRef>(*node.attrs.Find("graph")).index);
  }
  return called;
}

// Graph 1 is -x (then), graph 2 is |x| (else).
ModuleBuilder Branches() {
  ModuleBuilder m(3);
  m.Input(0);
  m.Output(1, m.Op(1, "Neg", {m.Input(1)}));
  m.Output(2, m.Op(2, "Abs", {m.Input(2)}));
  return m;
}

TEST(FoldControl, ConstantConditionSelectsBranch) {
  for (const bool yes : {true, false}) {
    ModuleBuilder m = Branches();
    m.Output(0, m.If(0, Flag(&m, 0, yes), {m.module.graphs[0].inputs[0]}, 1, 2));
    EXPECT_EQ(CallsOf(AfterPass(FoldControl, m.module, {{NumberOf(3)}}).main()),
              std::vector<uint32_t>{yes ? 1u : 2u});
  }
}

TEST(FoldControl, ConstantIndexSelectsBranchIfInRange) {
  for (const int64_t index : {0, 1, -1, -2, 2}) {
    ModuleBuilder m = Branches();
    const AttrList attrs = {{"branches", std::vector<GraphRef>{{1}, {2}}}};
    m.Output(0, m.Control(0, "msrt", "SwitchN", {m.Number(0, index), m.module.graphs[0].inputs[0]},
                          attrs, {kNumber})[0]);
    if (index == 2) {
      AfterPass(FoldControl, m.module, {}, /*changes=*/false);
      continue;
    }
    const uint32_t branch = index == 0 || index == -2 ? 1 : 2;
    EXPECT_EQ(CallsOf(AfterPass(FoldControl, m.module, {{NumberOf(-3)}}).main()),
              std::vector<uint32_t>{branch});
  }
}

TEST(FoldControl, EqualBranchesNeedNoCondition) {
  for (const char* other : {"Neg", "Abs"}) {
    ModuleBuilder m(3);
    const ValueId c = m.Input(0, kFlag), x = m.Input(0);
    m.Output(0, m.If(0, c, {x}, 1, 2));
    for (const uint32_t g : {1u, 2u})
      m.Output(g, m.Op(g, "Sub", {m.Op(g, g == 1 ? "Neg" : other, {m.Input(g)}), m.Number(g, 2)}));
    const bool same = std::string_view(other) == "Neg";
    const Module after = AfterPass(
        FoldControl, m.module, {{FlagOf(true), NumberOf(3)}, {FlagOf(false), NumberOf(3)}}, same);
    EXPECT_EQ(CallsOf(after.main()).size(), same ? 1u : 0u);
  }
}

TEST(FoldControl, BranchesWithRandomNodesAreNotEqual) {
  ModuleBuilder m(3);
  const Type two = Type::Tensor(DType::kF32, {2});
  m.Output(0, m.Control(0, "", "If", {m.Input(0, kFlag)},
                        {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}}, {two})[0]);
  for (const uint32_t g : {1u, 2u})
    m.Output(g, m.Op(g, "RandomUniform", {}, {{"shape", std::vector<int64_t>{2}}}));
  AfterPass(FoldControl, m.module, {{FlagOf(true)}, {FlagOf(false)}}, /*changes=*/false);
}

// A Loop over x -> x + 1 that also scans x.
Module Loop(ValueId (*trips)(ModuleBuilder*), ValueId (*condition)(ModuleBuilder*)) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0);
  const auto results = m.Control(0, "", "Loop", {trips(&m), condition(&m), x},
                                 {{"body", GraphRef{1}}, {"carried", int64_t{1}}},
                                 {kNumber, Type::Tensor(DType::kI64, {kUnknownDim})});
  for (ValueId v : results) m.Output(0, v);
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), y = m.Input(1);
  m.Output(1, go_on);
  m.Output(1, m.Op(1, "Add", {y, m.Number(1, 1)}));
  m.Output(1, y);
  return m.module;
}

TEST(FoldControl, LoopThatNeverBeginsReturnsInitialValues) {
  const auto none = [](ModuleBuilder*) { return kNoValue; };
  const auto no_trips = [](ModuleBuilder* m) { return m->Number(0, 0); };
  const auto trips = [](ModuleBuilder* m) { return m->Number(0, 3); };
  const auto no = [](ModuleBuilder* m) { return Flag(m, 0, false); };
  EXPECT_EQ(OpsOf(AfterPass(FoldControl, Loop(no_trips, none), {{NumberOf(3)}}).main()),
            (OpNames{"Identity", "Identity"}));
  EXPECT_EQ(OpsOf(AfterPass(FoldControl, Loop(trips, no), {{NumberOf(3)}}).main()),
            (OpNames{"Identity", "Identity"}));
  EXPECT_EQ(OpsOf(AfterPass(FoldControl, Loop(trips, none), {{NumberOf(3)}}).main()),
            (OpNames{"Loop"}));
}

TEST(FoldControl, WhileConditionIsEvaluatedForInitialValues) {
  for (const int64_t from : {9, 3}) {
    ModuleBuilder m(3);  // while (i < 5) i += x
    m.Output(0, m.While(0, {m.Number(0, from), m.Input(0)}, 1, 2));
    m.Output(1, m.Op(1, "Less", {m.Input(1), m.Number(1, 5)}));
    m.Input(1);
    m.Output(2, m.Op(2, "Add", {m.Input(2), m.Input(2)}));
    const Module after = AfterPass(FoldControl, m.module, {{NumberOf(3)}}, from == 9);
    EXPECT_EQ(OpsOf(after.main()), (OpNames{from == 9 ? "Identity" : "msrt.While"}));
  }
}

TEST(FoldControl, ConditionWithEffectsIsKept) {
  ModuleBuilder m(3);
  m.module.states.push_back({"count", kNumber, NumberOf(1)});
  const ValueId i = m.While(0, {m.Number(0, 9)}, 1, 2);
  const AttrList read = {
      {"slot", int64_t{0}}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}};
  m.Output(0, m.Control(0, "msrt", "StateRead", {}, read, {kNumber})[0]);
  m.Output(0, i);
  const ValueId now = m.Input(1);
  m.Control(1, "msrt", "StateWrite", {now}, {{"slot", int64_t{0}}}, {});
  m.Output(1, m.Op(1, "Less", {now, m.Number(1, 5)}));
  m.Output(2, m.Input(2));
  AfterPass(FoldControl, m.module, {{}}, /*changes=*/false);
}

TEST(FoldControl, ConstantArgumentOfAllCallersMovesIntoGraph) {
  for (const int64_t second : {4, 5}) {
    ModuleBuilder m(2);
    const ValueId x = m.Input(0);
    m.Output(0, m.Call(0, 1, {m.Call(0, 1, {x, m.Number(0, 4)}), m.Number(0, second)}));
    const ValueId a = m.Input(1), b = m.Input(1);
    m.Output(1, m.Op(1, "Mul", {a, b}));
    const Module after = AfterPass(FoldControl, m.module, {{NumberOf(3)}}, second == 4);
    const Graph& callee = after.graphs[1];
    EXPECT_EQ(callee.value(callee.nodes[0].inputs[1]).constant != nullptr, second == 4);
    EXPECT_EQ(callee.value(callee.nodes[0].inputs[0]).constant, nullptr);
  }
}

// Once its condition is resolved, g2 adds a list of two numbers to one of three. It may never run.
TEST(FoldControl, BranchThatCannotRunFailsOnlyWhenReached) {
  ModuleBuilder m(5);
  const ValueId c = m.Input(0, kFlag), x = m.Input(0);
  const auto list = [&](uint32_t g, int64_t length) {
    const std::vector<int64_t> values(static_cast<size_t>(length), 7);
    return m.module.graphs[g].AddConstant("list",
                                          ConstTensor::Of<int64_t>(DType::kI64, {length}, values));
  };
  Type any = kNumber;
  any.rank_known = false;
  const auto choose = [&](uint32_t g, ValueId condition, std::vector<ValueId> captured,
                          uint32_t yes, uint32_t no) {
    captured.insert(captured.begin(), condition);
    return m.Control(g, "", "If", captured,
                     {{"then_branch", GraphRef{yes}}, {"else_branch", GraphRef{no}}}, {any})[0];
  };
  m.Output(0, choose(0, c, {x}, 1, 2));
  m.Output(1, m.Op(1, "Neg", {m.Input(1)}));
  m.Input(2);
  m.Output(2, m.Op(2, "Add", {choose(2, Flag(&m, 2, true), {}, 3, 4), list(2, 2)}));
  m.Output(3, m.Op(3, "Neg", {list(3, 3)}));
  m.Output(4, m.Op(4, "Neg", {list(4, 2)}));
  const Module after =
      AfterPass(FoldControl, m.module, {{FlagOf(true), NumberOf(3)}}, /*changes=*/false);
  const auto failed = RunModule(after, {FlagOf(false), NumberOf(3)}, {"reference"}, {"all"});
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("[3]"), std::string::npos) << failed.status().message();
}

}  // namespace
}  // namespace msrt::testing
