#include "core/passes/drop_dead_carried.h"

#include "core/passes/flow_testing.h"

namespace msrt::testing {
namespace {

const AttrList kRead = {
    {"slot", int64_t{0}}, {"dtype", DType::kI64}, {"dims", std::vector<int64_t>{}}};

// A loop that carries a (a += b), b (b += 1), c (c *= 2) and collects all three. `read` says which
// of its six results are outputs.
Module Loop(const std::vector<size_t>& read) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0);
  const Type list = Type::Tensor(DType::kI64, {kUnknownDim});
  const auto results = m.Control(0, "", "Loop", {m.Number(0, 3), kNoValue, x, x, x, x, x},
                                 {{"body", GraphRef{1}}, {"carried", int64_t{3}}},
                                 {kNumber, kNumber, kNumber, list, list, list});
  for (size_t i : read) m.Output(0, results[i]);
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), a = m.Input(1), b = m.Input(1), c = m.Input(1),
                factor = m.Input(1);
  m.Input(1);  // captured but unused
  m.Output(1, go_on);
  m.Output(1, m.Op(1, "Add", {a, b}));
  m.Output(1, m.Op(1, "Add", {b, m.Number(1, 1)}));
  m.Output(1, m.Op(1, "Mul", {c, factor}));
  for (ValueId v : {a, b, c}) m.Output(1, v);
  return m.module;
}

struct TrimCase {
  std::vector<size_t> read;
  int64_t carried;
  size_t body_nodes, body_inputs;
};

TEST(DropDeadCarried, LoopCarriesOnlyNeededValues) {
  const std::vector<TrimCase> rows = {
      {{0}, 2, 2, 4},  // b is needed for a
      {{1}, 1, 1, 3},  // b alone
      {{2}, 1, 1, 4},  // c and its factor
      {{3}, 2, 2, 4},  // the scanned results of a
      {{0, 1, 2, 3, 4, 5}, 3, 3, 6},
  };
  for (const TrimCase& row : rows) {
    const Module after = AfterPass(DropDeadCarried, Loop(row.read), {{NumberOf(5)}});
    EXPECT_EQ(std::get<int64_t>(*after.main().nodes[0].attrs.Find("carried")), row.carried);
    EXPECT_EQ(after.graphs[1].nodes.size(), row.body_nodes);
    EXPECT_EQ(after.graphs[1].inputs.size(), row.body_inputs);
  }
}

TEST(DropDeadCarried, UnreadLoopWithoutEffectsIsRemovedWithItsBody) {
  const Module after = AfterPass(DropDeadCarried, Loop({}), {{NumberOf(5)}});
  EXPECT_TRUE(after.main().nodes.empty());
  EXPECT_EQ(after.graphs.size(), 1u);
}

TEST(DropDeadCarried, EffectsKeepTheLoopAndTheirInputs) {
  Module module = Loop({});
  module.states.push_back({"count", kNumber, NumberOf(1)});
  Graph& body = module.graphs[1];
  Node write;
  write.domain = "msrt";
  write.op = "StateWrite";
  write.attrs = {{"slot", int64_t{0}}};
  write.inputs = {body.inputs[4]};
  body.nodes.push_back(write);
  const Module after = AfterPass(DropDeadCarried, module, {{NumberOf(5)}});
  EXPECT_EQ(std::get<int64_t>(*after.main().nodes[0].attrs.Find("carried")), 1);
  EXPECT_EQ(OpsOf(after.graphs[1]), (OpNames{"Mul", "msrt.StateWrite"}));
}

TEST(DropDeadCarried, ConditionKeepsTheValuesItReads) {
  ModuleBuilder m(3);  // while (a < 10) a += b, b += 1, c += 1; only c is read
  const ValueId x = m.Input(0);
  const AttrList attrs = {
      {"condition", GraphRef{1}}, {"body", GraphRef{2}}, {"carried", int64_t{4}}};
  m.Output(0, m.Control(0, "msrt", "While", {x, x, x, x}, attrs,
                        {kNumber, kNumber, kNumber, kNumber})[2]);
  for (int i = 0; i < 4; ++i) m.Input(1);
  m.Output(1, m.Op(1, "Less", {m.module.graphs[1].inputs[0], m.Number(1, 10)}));
  ValueId in[4];
  for (ValueId& v : in) v = m.Input(2);
  m.Output(2, m.Op(2, "Add", {in[0], in[1]}));
  for (int i = 1; i < 4; ++i) m.Output(2, m.Op(2, "Add", {in[i], m.Number(2, 1)}));
  const Module after = AfterPass(DropDeadCarried, m.module, {{NumberOf(1)}, {NumberOf(20)}});
  EXPECT_EQ(std::get<int64_t>(*after.main().nodes[0].attrs.Find("carried")), 3);
  EXPECT_EQ(after.graphs[1].inputs.size(), 3u);
}

TEST(DropDeadCarried, DroppedScannedResultsDropTheirAxes) {
  ModuleBuilder m(2);
  const Type whole = Type::Tensor(DType::kF32, {3, 2}), slice = Type::Tensor(DType::kF32, {2}),
             turned = Type::Tensor(DType::kF32, {2, 3});
  const AttrList attrs = {{"body", GraphRef{1}},
                          {"carried", int64_t{0}},
                          {"num_scan_inputs", int64_t{1}},
                          {"scan_output_axes", std::vector<int64_t>{0, 1}},
                          {"scan_output_directions", std::vector<int64_t>{0, 1}}};
  m.Output(0, m.Control(0, "", "Scan", {m.Input(0, whole)}, attrs, {whole, turned})[1]);
  const ValueId x = m.Input(1, slice);
  m.Output(1, m.Op(1, "Abs", {x}));
  m.Output(1, m.Op(1, "Neg", {x}));
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  const Module after =
      AfterPass(DropDeadCarried, m.module, {{ConstTensor::Floats({3, 2}, numbers)}});
  EXPECT_EQ(std::get<std::vector<int64_t>>(*after.main().nodes[0].attrs.Find("scan_output_axes")),
            std::vector<int64_t>{1});
  EXPECT_EQ(OpsOf(after.graphs[1]), (OpNames{"Neg"}));
}

TEST(DropDeadCarried, BranchesKeepReadOutputsAndUsedInputs) {
  ModuleBuilder m(3);
  const ValueId c = m.Input(0, kFlag), x = m.Input(0);
  const AttrList attrs = {{"then_branch", GraphRef{1}}, {"else_branch", GraphRef{2}}};
  m.Output(0, m.Control(0, "", "If", {c, x, x, x}, attrs, {kNumber, kNumber})[1]);
  for (const uint32_t g : {1u, 2u}) {
    const ValueId a = m.Input(g), b = m.Input(g), d = m.Input(g);
    m.Output(g, m.Op(g, "Neg", {a}));
    m.Output(g, g == 1 ? m.Op(g, "Abs", {b}) : m.Op(g, "Neg", {d}));
  }
  const Module after = AfterPass(DropDeadCarried, m.module,
                                 {{FlagOf(true), NumberOf(5)}, {FlagOf(false), NumberOf(5)}});
  EXPECT_EQ(after.main().nodes[0].inputs.size(), 3u);
  EXPECT_EQ(after.main().nodes[0].outputs.size(), 1u);
  for (const uint32_t g : {1u, 2u}) EXPECT_EQ(after.graphs[g].nodes.size(), 1u);
}

TEST(DropDeadCarried, GraphWithTwoCallersKeepsItsSignature) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0);
  m.Output(0, m.Call(0, 1, {m.Call(0, 1, {x, x}), x}));
  m.Output(1, m.Op(1, "Neg", {m.Input(1)}));
  m.Input(1);
  AfterPass(DropDeadCarried, m.module, {{NumberOf(5)}}, /*changes=*/false);
}

}  // namespace
}  // namespace msrt::testing
