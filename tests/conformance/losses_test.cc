// Losses (core/train/losses.h) and their gradients against PyTorch's, in double precision.
#include "core/train/losses.h"

#include <gtest/gtest.h>

#include <map>

#include "core/autodiff/gradients.h"
#include "ops/builder.h"
#include "ops/node_view.h"
#include "ops/validate.h"
#include "tests/conformance/op_case.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

const std::vector<OpCase>& LossCases() {
  static const std::vector<OpCase> cases = OpCasesOf("losses/losses.cases");
  return cases;
}

template <typename T>
T AttrOr(const OpCase& c, std::string_view name, T otherwise) {
  const AttrValue* value = c.attrs.Find(name);
  return value == nullptr ? otherwise : std::get<T>(*value);
}

LossSpec SpecOf(const OpCase& c, const std::vector<ValueId>& inputs) {
  static const std::map<std::string, LossKind> kKinds = {
      {"CrossEntropy", LossKind::kCrossEntropy},
      {"MeanSquares", LossKind::kMeanSquares},
      {"MeanAbsolute", LossKind::kMeanAbsolute},
      {"Huber", LossKind::kHuber},
      {"BinaryCrossEntropy", LossKind::kBinaryCrossEntropy},
      {"BinaryCrossEntropyWithLogits", LossKind::kBinaryCrossEntropyWithLogits},
      {"KullbackLeibler", LossKind::kKullbackLeibler},
      {"Dice", LossKind::kDice},
      {"Ctc", LossKind::kCtc}};
  const std::string how = AttrOr(c, "reduction", std::string("mean"));
  LossSpec spec;
  spec.kind = kKinds.at(c.op);
  spec.reduction = how == "mean"  ? LossReduction::kMean
                   : how == "sum" ? LossReduction::kSum
                                  : LossReduction::kNone;
  spec.label_smoothing = AttrOr(c, "label_smoothing", 0.0);
  if (c.attrs.Find("ignore_index") != nullptr)
    spec.ignore_index = AttrOr(c, "ignore_index", int64_t{0});
  spec.delta = AttrOr(c, "delta", 1.0);
  spec.blank = AttrOr(c, "blank", int64_t{0});
  if (spec.kind == LossKind::kCtc) {
    spec.input_lengths = inputs[2];
    spec.target_lengths = inputs[3];
  } else if (inputs.size() > 2) {
    spec.class_weights = inputs[2];
  }
  return spec;
}

class Losses : public ::testing::TestWithParam<size_t> {};

TEST_P(Losses, AgreeWithPyTorch) {
  const OpCase& c = LossCases()[GetParam()];
  Module module;
  module.graphs.resize(1);
  module.entries = {0};
  Graph& graph = module.graphs[0];
  graph.name = "main";
  std::vector<ConstTensor> tensors;
  std::vector<ValueId> inputs;
  for (const CaseInput& input : c.inputs) {
    tensors.push_back(*input.tensor);
    inputs.push_back(graph.AddInput(StrCat("in", inputs.size()), input.tensor->type()));
  }
  GraphBuilder builder(&graph);
  const auto loss = AddLoss(builder, SpecOf(c, inputs), inputs[0], inputs[1]);
  ASSERT_TRUE(loss.ok()) << loss.status().message();
  graph.outputs = {*loss};
  const Status valid = Validate(&module);
  ASSERT_TRUE(valid.ok()) << valid.message();
  const auto gradients = AddGradients(&module, 0, {{*loss}, {}, {inputs[0]}});
  ASSERT_TRUE(gradients.ok()) << gradients.status().message();
  graph.outputs.push_back((*gradients)[0]);
  const auto results = RunModule(module, tensors, {"reference"});
  ASSERT_TRUE(results.ok()) << results.status().message();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(Difference((*results)[i], *c.expected[i], c.rtol, c.atol), "")
        << (i == 0 ? "loss" : "gradient");
  }
}

std::vector<size_t> Indices() {
  std::vector<size_t> all(LossCases().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Losses, ::testing::ValuesIn(Indices()),
                         [](const auto& row) { return LossCases()[row.param].name; });

TEST(LossRefusals, NameTheProblem) {
  Graph graph;
  const ValueId x = graph.AddInput("x", Type::Tensor(DType::kF32, {4}));
  const ValueId labels = graph.AddInput("t", Type::Tensor(DType::kI64, {4}));
  GraphBuilder builder(&graph);
  EXPECT_NE(AddLoss(builder, {}, x, labels).status().message().find("[N, C, ...]"),
            std::string::npos);
  EXPECT_NE(AddLoss(builder, {.kind = LossKind::kCtc}, x, labels).status().message().find("CTC"),
            std::string::npos);
  EXPECT_FALSE(AddLoss(builder, {.kind = LossKind::kHuber, .delta = 0}, x, x).ok());
}

}  // namespace
}  // namespace msrt::testing
