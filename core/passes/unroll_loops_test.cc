#include "core/passes/unroll_loops.h"

#include "core/passes/flow_testing.h"

namespace msrt::testing {
namespace {

// Options of Loop { x = x * 3 - i; scanned: x }.
struct Options {
  int64_t trips = 3;
  bool goes_on = true;
  int padding = 0;       // more nodes
  bool effects = false;  // an unused random number in each iteration
};
Module CountingLoop(const Options& options) {
  ModuleBuilder m(2);
  const auto results = m.Control(0, "", "Loop", {m.Number(0, options.trips), kNoValue, m.Input(0)},
                                 {{"body", GraphRef{1}}, {"carried", int64_t{1}}},
                                 {kNumber, Type::Tensor(DType::kI64, {kUnknownDim})});
  for (ValueId v : results) m.Output(0, v);
  const ValueId i = m.Input(1);
  m.Input(1, kFlag);
  ValueId x = m.Input(1);
  x = m.Op(1, "Sub", {m.Op(1, "Mul", {x, m.Number(1, 3)}), i});
  for (int n = 0; n < options.padding; ++n) x = m.Op(1, "Neg", {x});
  if (options.effects) m.Op(1, "RandomUniform", {}, {{"shape", std::vector<int64_t>{2}}});
  m.Output(1, Flag(&m, 1, options.goes_on));
  m.Output(1, x);
  m.Output(1, x);
  return m.module;
}
const std::vector<std::vector<ConstTensor>> kFive = {{NumberOf(5)}};

TEST(UnrollLoops, SmallLoopsAreUnrolled) {
  const OpNames ops = OpsOf(AfterPass(UnrollLoops, CountingLoop({}), kFive).main());
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Mul"), 3);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Concat"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Loop"), 0);
}

TEST(UnrollLoops, BodyThatReturnsFalseRunsOnce) {
  const OpNames ops = OpsOf(AfterPass(UnrollLoops, CountingLoop({.goes_on = false}), kFive).main());
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Mul"), 1);
}

TEST(UnrollLoops, LargeLoopsStay) {
  AfterPass(UnrollLoops, CountingLoop({.trips = 30}), kFive, /*changes=*/false);
  AfterPass(UnrollLoops, CountingLoop({.padding = 40}), kFive, /*changes=*/false);
  AfterPass(UnrollLoops, CountingLoop({.trips = 1, .padding = 100}), kFive);
}

TEST(UnrollLoops, EffectsAreNotCopied) {
  AfterPass(UnrollLoops, CountingLoop({.effects = true}), kFive, /*changes=*/false);
  AfterPass(UnrollLoops, CountingLoop({.trips = 1, .effects = true}), kFive);
}

TEST(UnrollLoops, LoopsWithOpenConditionsStay) {
  ModuleBuilder m(2);
  const ValueId x = m.Input(0), go = m.Input(0, kFlag);
  m.Output(0, m.Control(0, "", "Loop", {m.Number(0, 3), go, x},
                        {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kNumber})[0]);
  m.Input(1);
  m.Output(1, m.Input(1, kFlag));
  m.Output(1, m.Op(1, "Neg", {m.Input(1)}));
  AfterPass(UnrollLoops, m.module, {{NumberOf(5), FlagOf(true)}, {NumberOf(5), FlagOf(false)}},
            /*changes=*/false);
}

TEST(UnrollLoops, BodyMayDeclareIterationAsList) {
  ModuleBuilder m(2);  // collects the numbers, each a list of one
  m.Output(0, m.Control(0, "", "Loop", {m.Number(0, 3), kNoValue},
                        {{"body", GraphRef{1}}, {"carried", int64_t{0}}},
                        {Type::Tensor(DType::kI64, {kUnknownDim, 1})})[0]);
  const ValueId i = m.Input(1, Type::Tensor(DType::kI64, {1}));
  m.Output(1, m.Input(1, kFlag));
  m.Output(1, m.Op(1, "Neg", {i}));
  EXPECT_EQ(OpsOf(AfterPass(UnrollLoops, m.module, {{}}).main()).back(), "Concat");
}

}  // namespace
}  // namespace msrt::testing
