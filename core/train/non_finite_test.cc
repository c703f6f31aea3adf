#include "core/train/non_finite.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/train/trainer.h"
#include "core/train/training_module.h"
#include "ops/builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt {
namespace {

// x [batch, 2] -> x * w -> Exp -> dense 2.
Module Exponential() {
  Module module;
  module.name = "exponential";
  module.graphs.emplace_back().name = "main";
  module.entries = {0};
  Graph& g = module.graphs[0];
  const ValueId x = g.AddInput("x", Type::Tensor(DType::kF32, {module.SymbolFor("batch"), 2}));
  GraphBuilder b(&g);
  const ValueId w = g.AddConstant("w", ConstTensor::Floats({2, 2}, std::vector<float>{1, 2, 3, 4})),
                v = g.AddConstant("v", ConstTensor::Floats({2, 2}, std::vector<float>{1, 0, 0, 1}));
  const ValueId product = *b.Add("MatMul", "product", {x, w});
  const ValueId power = *b.Add("Exp", "power", {product});
  g.outputs = {*b.Add("MatMul", "scores", {power, v})};
  return module;
}

Batch OneSample(float first) {
  Batch batch;
  batch.tensors.push_back(ConstTensor::Floats({1, 2}, std::vector<float>{first, 1}));
  const int64_t label[] = {0};
  batch.tensors.push_back(ConstTensor::Int64s(label));
  batch.samples = batch.global_samples = 1;
  return batch;
}

class NonFinite : public ::testing::Test {
 protected:
  void SetUp() override {
    auto module = MakeTrainingModule(Exponential(), {});
    ASSERT_TRUE(module.ok()) << module.status().message();
    module_ = *std::move(module);
    auto trainer = Trainer::Create(testing::TestEnvironment(), module_, {});
    ASSERT_TRUE(trainer.ok()) << trainer.status().message();
    before_ = *(*trainer)->MakeCheckpoint();
  }
  std::string First(const Batch& batch) {
    auto first = FindNonFinite(testing::TestEnvironment(), module_, before_, batch, 0.01);
    EXPECT_TRUE(first.ok()) << first.status().message();
    return first.ok() ? *first : "";
  }
  Module module_;
  Checkpoint before_;
};

TEST_F(NonFinite, FiniteStepHasNone) { EXPECT_EQ(First(OneSample(1)), ""); }

TEST_F(NonFinite, FirstNodeThatOverflowsIsNamed) {
  EXPECT_EQ(First(OneSample(90)), "'power' (Exp)");
}

TEST_F(NonFinite, InputsAndStateComeFirst) {
  EXPECT_EQ(First(OneSample(std::numeric_limits<float>::quiet_NaN())), "input 'x'");
  for (CheckpointTensor& tensor : before_.tensors) {
    if (tensor.name == "w")
      tensor.data = ConstTensor::Floats(
          {2, 2}, std::vector<float>{1, std::numeric_limits<float>::infinity(), 0, 0});
  }
  EXPECT_EQ(First(OneSample(1)), "state 'w'");
}

}  // namespace
}  // namespace msrt
