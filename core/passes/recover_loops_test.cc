#include "core/passes/recover_loops.h"

#include "core/passes/flow_testing.h"

namespace msrt::testing {
namespace {

bool Calls(const Module& module, uint32_t callee) {
  for (const Graph& graph : module.graphs) {
    for (const Node& node : graph.nodes) {
      const AttrValue* graph_attr = node.attrs.Find("graph");
      if (node.op == "Call" && graph_attr != nullptr &&
          std::get<GraphRef>(*graph_attr).index == callee)
        return true;
    }
  }
  return false;
}

// header(n, sum) = n < limit ? header(n + 1, sum + n) : exit(n, sum), called by main; `else_loops`
// swaps the branches.
ModuleBuilder Counting(bool else_loops) {
  ModuleBuilder m(4);
  const ValueId from = m.Input(0);
  m.Output(0, m.Call(0, 1, {from, m.Number(0, 0)}));
  const ValueId n = m.Input(1), sum = m.Input(1);
  const ValueId limit = m.Number(1, 5);
  if (else_loops) m.Output(1, m.If(1, m.Op(1, "GreaterOrEqual", {n, limit}), {n, sum}, 3, 2));
  else m.Output(1, m.If(1, m.Op(1, "Less", {n, limit}), {n, sum}, 2, 3));
  const ValueId i = m.Input(2), total = m.Input(2);
  m.Output(2, m.Call(2, 1, {m.Op(2, "Add", {i, m.Number(2, 1)}), m.Op(2, "Add", {total, i})}));
  const ValueId last = m.Input(3), result = m.Input(3);
  m.Output(3, m.Op(3, "Sub", {result, last}));
  return m;
}
const std::vector<std::vector<ConstTensor>> kStarts = {
    {NumberOf(0)}, {NumberOf(4)}, {NumberOf(5)}, {NumberOf(9)}};

TEST(RecoverLoops, TailCallBecomesLoop) {
  for (const bool else_loops : {false, true}) {
    const Module after = AfterPass(RecoverLoops, Counting(else_loops).module, kStarts);
    const OpNames ops = OpsOf(after.graphs[1]);
    EXPECT_EQ(OpNames(ops.end() - 2, ops.end()), (OpNames{"Loop", "msrt.Call"}));
  }
}

TEST(RecoverLoops, EntryMayBeTheHeader) {
  ModuleBuilder m(3);  // the entry counts itself down
  const ValueId n = m.Input(0), sum = m.Input(0);
  m.Output(0, m.If(0, m.Op(0, "Equal", {n, m.Number(0, 0)}), {n, sum}, 1, 2));
  m.Input(1);
  m.Output(1, m.Input(1));
  const ValueId k = m.Input(2), s = m.Input(2);
  m.Output(2, m.Call(2, 0, {m.Op(2, "Sub", {k, m.Number(2, 1)}), m.Op(2, "Add", {s, k})}));
  const Module after =
      AfterPass(RecoverLoops, m.module, {{NumberOf(0), NumberOf(1)}, {NumberOf(7), NumberOf(1)}});
  const OpNames ops = OpsOf(after.main());
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Loop"), 1);
}

TEST(RecoverLoops, BodyMayBranchAndEndInAnotherGraph) {
  ModuleBuilder m =
      Counting(false);  // the body ends in a branch, and both arms in a graph that calls the header
  m.module.graphs.resize(7);
  m.module.graphs[2] = {};
  const ValueId i = m.Input(2), total = m.Input(2);
  m.Output(2, m.If(2, m.Op(2, "Equal", {i, m.Number(2, 2)}), {i, total}, 4, 5));
  for (const uint32_t g : {4u, 5u}) {
    const ValueId a = m.Input(g), b = m.Input(g);
    m.Output(g, m.Call(g, 6, {a, m.Op(g, g == 4 ? "Mul" : "Add", {b, m.Number(g, 3)})}));
  }
  const ValueId c = m.Input(6), d = m.Input(6);
  m.Output(6, m.Call(6, 1, {m.Op(6, "Add", {c, m.Number(6, 1)}), d}));
  const Module after = AfterPass(RecoverLoops, m.module, kStarts);
  const OpNames ops = OpsOf(after.graphs[1]);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Loop"), 1);
}

// The inner header ends in the outer one, as in nested source loops whose continuation is called
// from the header.
TEST(RecoverLoops, NestedLoopsAreRecoveredFromTheInnermost) {
  ModuleBuilder m(7);
  m.Output(0, m.Call(0, 1, {m.Input(0), m.Number(0, 0)}));
  const ValueId i = m.Input(1), s = m.Input(1);  // outer(i, s): i < 4 ? start of the inner one : s
  m.Output(1, m.If(1, m.Op(1, "Less", {i, m.Number(1, 4)}), {i, s}, 2, 3));
  const ValueId i2 = m.Input(2), s2 = m.Input(2);
  m.Output(2, m.Control(2, "msrt", "Call", {i2, m.Number(2, 0), s2}, {{"graph", GraphRef{4}}},
                        {kNumber})[0]);
  m.Input(3);
  m.Output(3, m.Input(3));
  const ValueId i4 = m.Input(4), j4 = m.Input(4),
                s4 =
                    m.Input(4);  // inner(i, j, s): j < i ? inner(i, j + 1, s + j) : outer(i + 1, s)
  m.Output(4, m.If(4, m.Op(4, "Less", {j4, i4}), {i4, j4, s4}, 5, 6));
  const ValueId i5 = m.Input(5), j5 = m.Input(5), s5 = m.Input(5);
  m.Output(5, m.Call(5, 4,
                     {i5, m.Op(5, "Add", {j5, m.Number(5, 1)}),
                      m.Op(5, "Add", {s5, m.Op(5, "Add", {j5, m.Number(5, 1)})})}));
  const ValueId i6 = m.Input(6);
  m.Input(6);
  m.Output(6, m.Call(6, 1, {m.Op(6, "Add", {i6, m.Number(6, 1)}), m.Input(6)}));
  const Module once = AfterPass(RecoverLoops, m.module, kStarts);
  const Module twice = AfterPass(RecoverLoops, once, kStarts);
  for (const uint32_t header : {1u, 4u}) {
    const OpNames ops = OpsOf(twice.graphs[header]);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "Loop"), 1) << Print(twice);
  }
}

TEST(RecoverLoops, OtherRecursionStays) {
  ModuleBuilder m(3);  // n! as n * (n - 1)!
  const ValueId n = m.Input(0);
  m.Output(0, m.If(0, m.Op(0, "LessOrEqual", {n, m.Number(0, 1)}), {n}, 1, 2));
  m.Output(1, m.Input(1));
  const ValueId k = m.Input(2);
  m.Output(2, m.Op(2, "Mul", {k, m.Call(2, 0, {m.Op(2, "Sub", {k, m.Number(2, 1)})})}));
  EXPECT_TRUE(Calls(AfterPass(RecoverLoops, m.module, {{NumberOf(6)}}, /*changes=*/false), 0));
}

TEST(RecoverLoops, EffectsRunAsOftenAndInTheSameOrder) {
  ModuleBuilder m(
      4);  // header: writes its count before it branches; body: adds to the state; exit: reads it
  m.module.states.push_back({"count", kNumber, NumberOf(1)});
  const AttrList read = {{"slot", int64_t{0}},
                         {"dtype", DType::kI64},
                         {"dims", std::vector<int64_t>{}}},
                 write = {{"slot", int64_t{0}}};
  const auto add = [&](uint32_t g, ValueId v) {
    const ValueId now = m.Control(g, "msrt", "StateRead", {}, read, {kNumber})[0];
    m.Control(g, "msrt", "StateWrite",
              {m.Op(g, "Add", {m.Op(g, "Mul", {now, m.Number(g, 10)}), v})}, write, {});
  };
  m.Output(0, m.Call(0, 1, {m.Input(0)}));
  const ValueId n = m.Input(1);
  add(1, n);
  m.Output(1, m.If(1, m.Op(1, "Less", {n, m.Number(1, 5)}), {n}, 2, 3));
  const ValueId k = m.Input(2);
  add(2, m.Op(2, "Neg", {k}));
  m.Output(2, m.Call(2, 1, {m.Op(2, "Add", {k, m.Number(2, 1)})}));
  m.Input(3);
  m.Output(3, m.Control(3, "msrt", "StateRead", {}, read, {kNumber})[0]);
  AfterPass(RecoverLoops, m.module, kStarts);
}

}  // namespace
}  // namespace msrt::testing
