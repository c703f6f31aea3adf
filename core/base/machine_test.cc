#include "core/base/machine.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

TEST(Machine, TypicalGrowsWithThreadsUpToTheCores) {
  const Machine one = TypicalMachine(1), all = TypicalMachine(AvailableCores()),
                more = TypicalMachine(1 << 20);
  EXPECT_GT(one.flops_per_second, 1e9);
  EXPECT_GT(one.bytes_per_second, 1e9);
  EXPECT_EQ(all.flops_per_second, AvailableCores() * one.flops_per_second);
  EXPECT_EQ(more.flops_per_second, all.flops_per_second);
  EXPECT_EQ(TypicalMachine(0).flops_per_second, one.flops_per_second);
}

TEST(Machine, MeasuredThroughputIsPlausible) {
  const auto parallel = MakeDefaultParallel(2);
  const auto machine = MeasureMachine(*parallel);
  ASSERT_TRUE(machine.ok()) << machine.status().message();
  EXPECT_GT(machine->flops_per_second, 1e8);
  EXPECT_LT(machine->flops_per_second, 1e13);
  EXPECT_GT(machine->bytes_per_second, 1e8);
  EXPECT_LT(machine->bytes_per_second, 1e13);
}

TEST(Machine, FailingTeamReturnsItsError) {
  struct Failing final : ParallelFor {
    int threads() const override { return 1; }
    Status Run(int64_t, FunctionRef<void(int64_t)>) override { return OutOfMemory(1, "a task"); }
  } failing;
  EXPECT_EQ(MeasureMachine(failing).status().code(), Code::kOutOfMemory);
}

}  // namespace
}  // namespace msrt
