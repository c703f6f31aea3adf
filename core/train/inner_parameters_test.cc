// Weights inside control flow train like those of the main graph.
#include "core/train/inner_parameters.h"

#include <gtest/gtest.h>

#include "core/train/trainer.h"
#include "core/train/training_module.h"
#include "ops/validate.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

const std::vector<double> kWeight{0.5, -0.3, 0.2, 0.1, 0.4, -0.6, 0.3, 0.2, 0.7};
const Type kRows = Type::Tensor(DType::kF64, {4, 3});

ConstTensor Doubles(Dims dims, const std::vector<double>& values) {
  return ConstTensor::Of<double>(DType::kF64, dims, values);
}

// y = tanh(y W), twice: by a Loop whose body has the weight, by If in each iteration, by calls of a
// function value, or written out.
enum class Kind { kWrittenOut, kLoop, kIf, kFunction };
Module Twice(Kind kind) {
  ModuleBuilder m(kind == Kind::kWrittenOut ? 1 : kind == Kind::kIf ? 3 : 2);
  m.module.name = "twice";
  const auto weight = [&](uint32_t g) {
    return m.module.graphs[g].AddConstant("W", Doubles({3, 3}, kWeight));
  };
  const auto layer = [&](uint32_t g, ValueId y, ValueId w) {
    return m.Op(g, "Tanh", {m.Op(g, "MatMul", {y, w})});
  };
  const ValueId x = m.Input(0, kRows);
  m.module.graphs[0].value(x).name = "x";
  ValueId y = x;
  if (kind == Kind::kWrittenOut) {
    const ValueId w = weight(0);
    y = layer(0, layer(0, x, w), w);
  } else if (kind == Kind::kFunction) {
    const Type function = Type::Function({kRows}, {kRows});
    const ValueId f = m.Control(0, "msrt", "Partial", {}, {{"graph", GraphRef{1}}}, {function})[0];
    for (int i = 0; i < 2; ++i) y = m.Control(0, "msrt", "Call", {f, y}, {}, {kRows})[0];
    const ValueId in = m.Input(1, kRows);
    m.Output(1, layer(1, in, weight(1)));
  } else {
    y = m.Control(0, "", "Loop", {m.Number(0, 2), kNoValue, x},
                  {{"body", GraphRef{1}}, {"carried", int64_t{1}}}, {kRows})[0];
    const ValueId i = m.Input(1);
    m.Output(1, m.Input(1, Type::Tensor(DType::kBool, {})));
    const ValueId in = m.Input(1, kRows);
    if (kind == Kind::kLoop) {
      m.Output(1, layer(1, in, weight(1)));
    } else {
      const ValueId w = weight(1);
      m.Output(1,
               m.Control(1, "", "If", {m.Op(1, "Less", {i, m.Number(1, 9)}), in, w},
                         {{"then_branch", GraphRef{2}}, {"else_branch", GraphRef{2}}}, {kRows})[0]);
      const ValueId z = m.Input(2, kRows), passed = m.Input(2, Type::Tensor(DType::kF64, {3, 3}));
      m.Output(2, layer(2, z, passed));
    }
  }
  m.Output(0, y);
  return m.module;
}

Batch Targets() {
  std::vector<double> inputs, targets;
  for (int i = 0; i < 12; ++i) inputs.push_back(0.1 * i - 0.5), targets.push_back(0.3 - 0.05 * i);
  Batch batch;
  batch.tensors = {Doubles({4, 3}, inputs), Doubles({4, 3}, targets)};
  batch.samples = batch.global_samples = 4;
  return batch;
}

TrainingSpec MeanSquares() {
  TrainingSpec spec;
  spec.loss.kind = LossKind::kMeanSquares;
  return spec;
}

// The losses of four steps, then the weight after them, then an output of the exported model.
std::vector<double> Trained(Kind kind) {
  auto training = MakeTrainingModule(Twice(kind), MeanSquares());
  if (!training.ok()) return ADD_FAILURE() << training.status().message(), std::vector<double>();
  TrainerOptions options;
  options.schedule.rate = 0.3;
  auto trainer = Trainer::Create(TestEnvironment(), *std::move(training), options);
  if (!trainer.ok()) return ADD_FAILURE() << trainer.status().message(), std::vector<double>();
  std::vector<double> numbers;
  for (int i = 0; i < 4; ++i) {
    auto step = (*trainer)->Step(Targets());
    if (!step.ok()) return ADD_FAILURE() << step.status().message(), numbers;
    numbers.push_back(step->loss);
  }
  const auto weight = (*trainer)->State("W");
  if (!weight.ok()) return ADD_FAILURE() << weight.status().message(), numbers;
  for (double w : weight->As<double>()) numbers.push_back(w);
  const auto exported = (*trainer)->Export();
  if (!exported.ok()) return ADD_FAILURE() << exported.status().message(), numbers;
  const auto outputs = RunModule(*exported, {Targets().tensors[0]});
  if (!outputs.ok()) return ADD_FAILURE() << outputs.status().message(), numbers;
  for (double y : (*outputs)[0].As<double>()) numbers.push_back(y);
  return numbers;
}

TEST(InnerParameters, TrainLikeThoseOfTheMainGraph) {
  const std::vector<double> expected = Trained(Kind::kWrittenOut);
  ASSERT_EQ(expected.size(), 4u + 9 + 12);
  EXPECT_LT(expected[3], 0.9 * expected[0]);
  for (const Kind kind : {Kind::kLoop, Kind::kIf, Kind::kFunction}) {
    const std::vector<double> numbers = Trained(kind);
    ASSERT_EQ(numbers.size(), expected.size()) << static_cast<int>(kind);
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_NEAR(numbers[i], expected[i], 1e-12) << static_cast<int>(kind) << " number " << i;
  }
}

TEST(InnerParameters, CanBeFrozen) {
  TrainingSpec spec = MeanSquares();
  spec.frozen = {"W"};
  const auto training = MakeTrainingModule(Twice(Kind::kLoop), spec);
  EXPECT_NE(training.status().message().find("has no parameters to train: all are frozen"),
            std::string::npos)
      << training.status().message();
}

TEST(InnerParameters, WhatCannotTrainIsNamed) {
  Module drops = Twice(Kind::kLoop);
  GraphBuilder builder(&drops.graphs[1]);
  const auto dropped = builder.Add("Dropout", "drop", {drops.graphs[1].outputs[1]});
  ASSERT_TRUE(dropped.ok());
  drops.graphs[1].outputs[1] = *dropped;
  Status status = MakeTrainingModule(std::move(drops), MeanSquares()).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("node 'drop' (Dropout)"), std::string::npos) << status.message();

  Module norm = Twice(Kind::kLoop);
  Graph& body = norm.graphs[1];
  std::vector<ValueId> inputs{body.outputs[1]};
  for (const char* name : {"scale", "shift", "mean", "variance"})
    inputs.push_back(body.AddConstant(name, Doubles({3}, {1, 1.5, 2})));
  const auto normalised = GraphBuilder(&body).Add("BatchNormalization", "norm", inputs);
  ASSERT_TRUE(normalised.ok()) << normalised.status().message();
  body.outputs[1] = *normalised;
  status = MakeTrainingModule(std::move(norm), MeanSquares()).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("node 'norm' (BatchNormalization)"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("freeze 'scale'"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace msrt::testing
