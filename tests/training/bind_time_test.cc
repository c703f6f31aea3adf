// A training step of 5,000 nodes binds in at most 50 ms.
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

#include "core/base/thread_clock.h"
#include "core/bind/binding.h"
#include "core/train/training_module.h"
#include "tests/conformance/pipeline.h"
#include "tests/training/training_testing.h"

namespace msrt::testing {
namespace {

TEST(TrainingBindTime, StepOf5000NodesBindsIn50Milliseconds) {
  constexpr int64_t kLayers = 25, kSequence = 8, kBatch = 2, kClasses = 32;
  Module model = ZooModule(
      "gpt2", DType::kF32,
      {.width = 16, .classes = kClasses, .layers = kLayers, .heads = 2, .sequence = kSequence});
  TrainingSpec spec;
  spec.loss.kind = LossKind::kMeanSquares;
  spec.optimizer.kind = OptimizerKind::kAdamW;
  auto training = MakeTrainingModule(std::move(model), spec);
  ASSERT_TRUE(training.ok()) << training.status().message();
  CompileOptions options;
  options.typical = {{"input_ids", {kBatch, kSequence}}, {"target", {kBatch, kSequence, kClasses}}};
  options.prepare_first_run = false;
  const auto model_or = CompileModule(TestEnvironment(), *std::move(training), options);
  ASSERT_TRUE(model_or.ok()) << model_or.status().message();
  const CompiledModel& compiled = **model_or;
  const Program& program = *compiled.entries[0]->current()->program;
  EXPECT_GE(program.graph->nodes.size(), size_t{5000});
  BindRequest request;
  request.inputs = {Type::Tensor(DType::kI64, {kBatch, kSequence}),
                    Type::Tensor(DType::kF32, {kBatch, kSequence, kClasses}),
                    Type::Tensor(DType::kF32, {})};
  for (uint32_t slot : program.state_slots)
    request.states.push_back(compiled.module.states[slot].type);
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 20; ++round) {
    const double begin = ThreadCpuMillis();
    const auto binding = Bind(program, compiled.module, *compiled.environment->evaluator, request);
    least = std::min(least, ThreadCpuMillis() - begin);
    ASSERT_TRUE(binding.ok()) << binding.status().message();
    EXPECT_EQ((*binding)->end_step, program.steps.size());
  }
  std::printf("a step of %zu nodes in %zu program steps binds in %.1f ms\n",
              program.graph->nodes.size(), program.steps.size(), least);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(least, 50);
#endif
}

}  // namespace
}  // namespace msrt::testing
