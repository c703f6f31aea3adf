#include "core/passes/hoist_invariants.h"

#include "core/passes/flow_testing.h"

namespace msrt::testing {
namespace {

const Type kThree = Type::Tensor(DType::kF32, {3}),
           kOpenDims = Type::Tensor(DType::kF32, {kUnknownDim});

// main(n, x) = Loop(trips or n) { y += op(x, x) }, where x is captured as `type`.
Module Adding(std::string_view op, const Type& type, int64_t trips = -1) {
  ModuleBuilder m(2);
  const ValueId n = m.Input(0), x = m.Input(0, type);
  const ValueId count = trips < 0 ? n : m.Number(0, trips);
  m.Output(0, m.Control(0, "", "Loop", {count, kNoValue, x, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {type})[0]);
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), y = m.Input(1, type), captured = m.Input(1, type);
  const bool unary = op == "Tanh";
  const ValueId same = m.Op(
      1, op, unary ? std::vector<ValueId>{captured} : std::vector<ValueId>{captured, captured});
  m.Output(1, go_on);
  m.Output(1, m.Op(1, "Add", {y, same}));
  return m.module;
}

std::vector<std::vector<ConstTensor>> Inputs(DType dtype = DType::kF32) {
  std::vector<std::vector<ConstTensor>> inputs;
  const std::vector<float> floats = {0.5f, -1, 2};
  const std::vector<int64_t> numbers = {5, -1, 2};
  for (const int64_t n : {0, 3}) {
    inputs.push_back({NumberOf(n), dtype == DType::kF32 ? ConstTensor::Floats({3}, floats)
                                                        : ConstTensor::Int64s(numbers)});
  }
  return inputs;
}

TEST(HoistInvariants, NodesOnCapturedValuesRunOnce) {
  for (const char* op : {"Mul", "Tanh"}) {
    const Module after = AfterPass(HoistInvariants, Adding(op, kThree), Inputs());
    EXPECT_EQ(OpsOf(after.main()), (OpNames{op, "Loop"}));
    EXPECT_EQ(OpsOf(after.graphs[1]), (OpNames{"Add"}));
  }
}

TEST(HoistInvariants, NodesThatMayFailStayIfLoopMayNotBegin) {
  const Type numbers = Type::Tensor(DType::kI64, {3});
  AfterPass(HoistInvariants, Adding("Div", numbers), Inputs(DType::kI64), /*changes=*/false);
  EXPECT_EQ(
      OpsOf(AfterPass(HoistInvariants, Adding("Div", numbers, 2), Inputs(DType::kI64)).main()),
      (OpNames{"Div", "Loop"}));
  // A loop without iterations never divides by zero.
  const std::vector<int64_t> zeros = {0, 0, 0};
  AfterPass(HoistInvariants, Adding("Div", numbers), {{NumberOf(0), ConstTensor::Int64s(zeros)}},
            /*changes=*/false);
}

TEST(HoistInvariants, BinaryNodesWithOpenDimsStay) {
  AfterPass(HoistInvariants, Adding("Mul", kOpenDims), Inputs(), /*changes=*/false);
  EXPECT_EQ(OpsOf(AfterPass(HoistInvariants, Adding("Tanh", kOpenDims), Inputs()).main()),
            (OpNames{"Tanh", "Loop"}));
}

TEST(HoistInvariants, ConditionIsHoistedWhereBodyIsNot) {
  ModuleBuilder m(3);  // while (i < n / 2) i += n / 2
  const ValueId n = m.Input(0);
  m.Output(0, m.While(0, {m.Number(0, 0), n}, 1, 2));
  const ValueId i = m.Input(1);
  m.Output(1, m.Op(1, "Less", {i, m.Op(1, "Div", {m.Input(1), m.Number(1, 2)})}));
  const ValueId j = m.Input(2);
  m.Output(2, m.Op(2, "Add", {j, m.Op(2, "Div", {m.Input(2), m.Number(2, 2)})}));
  const Module after = AfterPass(HoistInvariants, m.module, {{NumberOf(9)}, {NumberOf(-9)}});
  EXPECT_EQ(OpsOf(after.main()), (OpNames{"Div", "msrt.While"}));
  EXPECT_EQ(OpsOf(after.graphs[1]), (OpNames{"Less"}));
  EXPECT_EQ(OpsOf(after.graphs[2]), (OpNames{"Div", "Add"}));
}

TEST(HoistInvariants, UnchangedCarriedValueIsCaptured) {
  ModuleBuilder m(2);  // carries y and x, where x never changes
  const ValueId n = m.Input(0), x = m.Input(0, kThree);
  const auto results =
      m.Control(0, "", "Loop", {n, kNoValue, x, x},
                {{"body", GraphRef{1}}, {"carried", int64_t{2}}}, {kThree, kThree});
  m.Output(0, m.Op(0, "Sub", {results[0], results[1]}));
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), y = m.Input(1, kThree), same = m.Input(1, kThree);
  m.Output(1, go_on);
  m.Output(1, m.Op(1, "Add", {y, m.Op(1, "Tanh", {same})}));
  m.Output(1, same);
  const Module after = AfterPass(HoistInvariants, m.module, Inputs());
  EXPECT_EQ(OpsOf(after.main()), (OpNames{"Tanh", "Loop", "Sub"}));
  EXPECT_EQ(after.main().nodes[2].inputs[1], after.main().inputs[1]);
}

TEST(HoistInvariants, HoistsOutOfTwoLoops) {
  ModuleBuilder m(3);
  const ValueId n = m.Input(0), x = m.Input(0, kThree);
  const AttrList inner = {{"body", GraphRef{2}}, {"carried", int64_t{1}}},
                 outer = {{"body", GraphRef{1}}, {"carried", int64_t{1}}};
  m.Output(0, m.Control(0, "", "Loop", {n, kNoValue, x, n, x}, outer, {kThree})[0]);
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), y = m.Input(1, kThree), count = m.Input(1),
                captured = m.Input(1, kThree);
  m.Output(1, go_on);
  m.Output(1, m.Control(1, "", "Loop", {count, kNoValue, y, captured}, inner, {kThree})[0]);
  m.Input(2);
  const ValueId again = m.Input(2, kFlag), z = m.Input(2, kThree);
  m.Output(2, again);
  m.Output(2, m.Op(2, "Add", {z, m.Op(2, "Exp", {m.Input(2, kThree)})}));
  EXPECT_EQ(OpsOf(AfterPass(HoistInvariants, m.module, Inputs()).main()), (OpNames{"Exp", "Loop"}));
}

TEST(HoistInvariants, RandomNumbersAndStateStay) {
  ModuleBuilder m(2);
  const ValueId n = m.Input(0), x = m.Input(0, kThree);
  m.Output(0, m.Control(0, "", "Loop", {n, kNoValue, x, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kThree})[0]);
  m.Input(1);
  const ValueId go_on = m.Input(1, kFlag), y = m.Input(1, kThree);
  m.Output(1, go_on);
  m.Output(1, m.Op(1, "Add", {y, m.Op(1, "RandomUniformLike", {m.Input(1, kThree)})}));
  AfterPass(HoistInvariants, m.module, Inputs(), /*changes=*/false);
}

}  // namespace
}  // namespace msrt::testing
