// Effects of the smaller passes on a graph; results must not change.
#include <gtest/gtest.h>

#include "core/passes/fold_batchnorm.h"
#include "core/passes/fold_constants.h"
#include "core/passes/fuse_epilogue.h"
#include "core/passes/merge_common.h"
#include "core/passes/passes_testing.h"
#include "core/passes/remove_dead.h"

namespace msrt {
namespace {

using testing::ExpectSameResults;
using testing::kContext;
using testing::Names;
using testing::Net;

AttrList Pads(int64_t pad) { return {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}}; }

TEST(FoldConstants, FoldsChainsAndShapesWithinTheBudget) {
  Net net;
  const ValueId x = net.Input("x", {2, 6});
  const ValueId shape = net.Op("Shape", {x});
  const ValueId sum = net.Op("Add", {net.Weight({6}), net.Weight({6})});
  const ValueId y = net.Op("Add", {x, net.Op("Neg", {sum})});
  net.graph().outputs = {y, shape};
  ExpectSameResults(net.module, {net.Random({2, 6})});
  ASSERT_TRUE(FoldConstants(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), Names{"Add"});

  Net large;
  const ValueId big =
      large.Op("Expand", {large.Weight({1})}, {{"shape", std::vector<int64_t>{1000, 1000}}});
  large.graph().outputs = {big};
  const PassContext small_budget{.evaluator = kContext.evaluator, .fold_budget_bytes = 1000};
  ASSERT_TRUE(FoldConstants(small_budget, &large.graph()).ok());
  EXPECT_EQ(large.Ops(), Names{"Expand"});
}

TEST(FoldConstants, AllGraphsShareOneBudget) {
  Module module;
  for (int g = 0; g < 10; ++g) {
    Net net;
    net.graph().outputs = {
        net.Op("Expand", {net.Weight({1})}, {{"shape", std::vector<int64_t>{1000}}})};
    module.graphs.push_back(net.graph());
  }
  FoldBudget budget{.bytes = 3 * 4000};
  const PassContext context{.evaluator = kContext.evaluator, .folding = &budget};
  for (Graph& graph : module.graphs) ASSERT_TRUE(FoldConstants(context, &graph).ok());
  size_t left = 0;
  for (const Graph& graph : module.graphs) left += graph.nodes.size();
  EXPECT_EQ(left, 7u);

  Net product;
  const ValueId w = product.Weight({100, 100});
  product.graph().outputs = {product.Op("MatMul", {w, w})};
  FoldBudget little_time{.work = 1e6};
  ASSERT_TRUE(
      FoldConstants({.evaluator = kContext.evaluator, .folding = &little_time}, &product.graph())
          .ok());
  EXPECT_EQ(product.Ops(), Names{"MatMul"});
}

TEST(WidenWeights, WidensLargeWeightsWithinTheBudgetOfBytes) {
  const auto stored = [](Net* net, Dims dims) {
    const std::vector<int8_t> levels(static_cast<size_t>(dims.elements()), 3);
    const ValueId weight =
        net->graph().AddConstant("q", ConstTensor::Of<int8_t>(DType::kI8, dims, levels));
    return net->Op("DequantizeLinear", {weight, net->Scalar(0.5)});
  };
  Net net;
  const ValueId x = net.Input("x", {2, 2048}), w = stored(&net, {2048, 4});
  net.graph().outputs = {net.Op("MatMul", {x, net.Op("Neg", {w})})};
  ExpectSameResults(net.module, {net.Random({2, 2048})});
  ASSERT_TRUE(FoldConstants(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"DequantizeLinear", "Neg", "MatMul"}));
  // The limits on one constant and on work do not apply, but the limit on all bytes does.
  FoldBudget no_bytes{.bytes = 1000};
  ASSERT_TRUE(
      WidenWeights({.evaluator = kContext.evaluator, .folding = &no_bytes}, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"DequantizeLinear", "Neg", "MatMul"}));
  FoldBudget no_work{.bytes = 1e6, .work = 0};
  ASSERT_TRUE(
      WidenWeights({.evaluator = kContext.evaluator, .fold_budget_bytes = 64, .folding = &no_work},
                   &net.graph())
          .ok());
  EXPECT_EQ(net.Ops(), (Names{"Neg", "MatMul"}));
  EXPECT_EQ(no_work.bytes, 1e6 - 4 * 2048 * 4);
  EXPECT_EQ(net.graph().value(w).constant->As<float>()[77], 1.5f);
  ASSERT_TRUE(WidenWeights(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), Names{"MatMul"});

  Net small;
  small.graph().outputs = {stored(&small, {64})};
  ASSERT_TRUE(FoldConstants(kContext, &small.graph()).ok());
  EXPECT_EQ(small.Ops(), Names{});
}

TEST(RemoveDead, KeepsUsedNodesAndEffects) {
  Net net;
  net.module.states.push_back({"s", Type::Tensor(DType::kF32, {2}), net.Random({2})});
  const ValueId x = net.Input("x", {2});
  net.Op("Exp", {net.Op("Neg", {x})});
  ASSERT_TRUE(net.builder.Add("msrt", "StateWrite", "write", {x}, {{"slot", int64_t{0}}}, 0).ok());
  net.graph().outputs = {net.Op("Abs", {x})};
  ASSERT_TRUE(RemoveDead(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"msrt.StateWrite", "Abs"}));
  EXPECT_EQ(net.graph().value_count(), 2u);
}

TEST(MergeCommon, MergesOnlyEqualNodes) {
  Net net;
  const ValueId x = net.Input("x", {4});
  const ValueId a = net.Op("LeakyRelu", {x}, {{"alpha", 0.5}}),
                b = net.Op("LeakyRelu", {x}, {{"alpha", 0.5}});
  const ValueId c = net.Op("LeakyRelu", {x}, {{"alpha", 0.25}});
  net.graph().outputs = {net.Op("Add", {net.Op("Add", {a, b}), c})};
  ExpectSameResults(net.module, {net.Random({4})});
  ASSERT_TRUE(MergeCommon(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"LeakyRelu", "LeakyRelu", "Add", "Add"}));
}

TEST(FuseEpilogue, KeepsClipWithCrossedBounds) {
  Net net;
  const ValueId x = net.Input("x", {1, 2, 3, 3});
  net.graph().outputs = {net.Op("Clip", {net.Op("Conv", {x, net.Weight({2, 2, 1, 1})})},
                                {{"min", 2.5}, {"max", 2.0}})};
  ExpectSameResults(net.module, {net.Random({1, 2, 3, 3})});
  ASSERT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"Conv", "Clip"}));
}

// Fused products of integers do not exist.
TEST(FuseEpilogue, KeepsProductsOfIntegers) {
  Net net;
  const ValueId a = net.graph().AddInput("a", Type::Tensor(DType::kI32, {2, 3}));
  const ValueId b = net.graph().AddInput("b", Type::Tensor(DType::kI32, {3, 4}));
  net.graph().outputs = {net.Op("Clip", {net.Op("MatMul", {a, b})}, {{"min", 1.0}})};
  ASSERT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"MatMul", "Clip"}));
}

TEST(FoldBatchNorm, FoldsIntoConvAndGroupedConvTranspose) {
  Net net;
  const ValueId x = net.Input("x", {1, 4, 5, 5});
  const auto norm = [&](ValueId v, int64_t channels) {
    return net.Op("BatchNormalization",
                  {v, net.Weight({channels}), net.Weight({channels}), net.Weight({channels}),
                   net.Weight({channels}, 0.5, 2)},
                  {{"epsilon", 0.01}});
  };
  const ValueId conv = norm(net.Op("Conv", {x, net.Weight({6, 4, 3, 3})}, Pads(1)), 6);
  const ValueId up = norm(net.Op("ConvTranspose", {conv, net.Weight({6, 4, 2, 2}), net.Weight({8})},
                                 {{"group", int64_t{2}}, {"strides", std::vector<int64_t>{2, 2}}}),
                          8);
  net.graph().outputs = {up};
  ExpectSameResults(net.module, {net.Random({1, 4, 5, 5})});
  ASSERT_TRUE(FoldBatchNorm(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"Conv", "ConvTranspose"}));
}

TEST(FoldBatchNorm, KeepsConvolutionWithOtherUses) {
  Net net;
  const ValueId conv = net.Op("Conv", {net.Input("x", {1, 2, 3, 3}), net.Weight({2, 2, 1, 1})});
  const ValueId norm = net.Op("BatchNormalization", {conv, net.Weight({2}), net.Weight({2}),
                                                     net.Weight({2}), net.Weight({2}, 0.5, 2)});
  net.graph().outputs = {norm, conv};
  ASSERT_TRUE(FoldBatchNorm(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"Conv", "BatchNormalization"}));
}

TEST(FuseEpilogue, FusesBiasResidualAndActivation) {
  Net net;
  const ValueId x = net.Input("x", {1, 3, 4, 4});
  const ValueId conv = net.Op("Conv", {x, net.Weight({3, 3, 3, 3})}, Pads(1));
  const ValueId biased = net.Op("Add", {conv, net.Weight({3, 1, 1})});
  const ValueId sum = net.Op("Add", {x, biased});
  net.graph().outputs = {net.Op("Clip", {sum}, {{"min", 0.0}, {"max", 0.75}})};
  ExpectSameResults(net.module, {net.Random({1, 3, 4, 4})});
  ASSERT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
  ASSERT_EQ(net.Ops(), Names{"msrt.FusedConv"});
  EXPECT_EQ(net.graph().nodes[0].inputs.size(), 4u);
}

// Two branches of a block halve an image of open size: their results have equal dims in every run.
TEST(FuseEpilogue, FusesResidualsOfOpenImages) {
  const auto block = [](int64_t pad, bool named) {
    Net net;
    const ValueId x =
        net.Input("x", {1, 3, named ? net.module.SymbolFor("height") : kUnknownDim, kUnknownDim});
    const std::vector<int64_t> two{2, 2};
    AttrList wide = Pads(pad), narrow;
    wide.Set("strides", two);
    narrow.Set("strides", two);
    const ValueId a = net.Op("Conv", {x, net.Weight({4, 3, 3, 3})}, wide);
    const ValueId b = net.Op("Conv", {net.Op("Relu", {x}), net.Weight({4, 3, 1, 1})}, narrow);
    net.graph().outputs = {net.Op("Relu", {net.Op("Add", {a, b})})};
    if (pad == 1) {
      ExpectSameResults(net.module, {net.Random({1, 3, 8, 9})});
      ExpectSameResults(net.module, {net.Random({1, 3, 7, 6})});
    }
    EXPECT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
    return net.Ops();
  };
  EXPECT_EQ(block(1, false), (Names{"Relu", "Conv", "msrt.FusedConv"}));
  EXPECT_EQ(block(1, true), (Names{"Relu", "Conv", "msrt.FusedConv"}));
  // With another padding the Add broadcasts or fails.
  EXPECT_EQ(block(2, false), (Names{"Conv", "Relu", "Conv", "Add", "Relu"}));
}

TEST(FuseEpilogue, FusesIntoMatMulAndGemm) {
  Net net;
  const ValueId x = net.Input("x", {2, 5, 4});
  const ValueId product =
      net.Op("Add", {net.Op("MatMul", {x, net.Weight({4, 3})}), net.Weight({3})});
  const ValueId gelu = net.Op("Gelu", {product}, {{"approximate", std::string("tanh")}});
  const ValueId flat = net.Op("Reshape", {gelu}, {{"shape", std::vector<int64_t>{10, 3}}});
  const ValueId gemm = net.Op("Gemm", {flat, net.Weight({2, 3}), net.Weight({2})},
                              {{"transB", int64_t{1}}, {"alpha", 0.5}});
  net.graph().outputs = {net.Op("Sigmoid", {gemm})};
  ExpectSameResults(net.module, {net.Random({2, 5, 4})});
  ASSERT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"msrt.FusedMatMul", "Reshape", "msrt.FusedMatMul"}));
}

TEST(FuseEpilogue, StopsAtOtherUsesAndBroadcasts) {
  Net net;  // an activation ends the chain
  const ValueId x = net.Input("x", {1, 2, 3, 3});
  const ValueId relu = net.Op("Relu", {net.Op("Conv", {x, net.Weight({2, 2, 1, 1})})});
  net.graph().outputs = {net.Op("Add", {relu, x})};
  ASSERT_TRUE(FuseEpilogue(kContext, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"msrt.FusedConv", "Add"}));

  Net shared;  // the value in between has another use
  const ValueId conv =
      shared.Op("Conv", {shared.Input("x", {1, 2, 3, 3}), shared.Weight({2, 2, 1, 1})});
  shared.graph().outputs = {shared.Op("Relu", {conv}), conv};
  ASSERT_TRUE(FuseEpilogue(kContext, &shared.graph()).ok());
  EXPECT_EQ(shared.Ops(), (Names{"Conv", "Relu"}));

  Net broadcast;  // the other operand is larger or may be: it is not a residual
  const ValueId small =
      broadcast.Op("Conv", {broadcast.Input("x", {1, 2, 3, 3}), broadcast.Weight({2, 2, 1, 1})});
  const ValueId larger = broadcast.Input("larger", {4, 2, 3, 3});
  broadcast.graph().outputs = {broadcast.Op("Add", {small, larger})};
  ASSERT_TRUE(FuseEpilogue(kContext, &broadcast.graph()).ok());
  EXPECT_EQ(broadcast.Ops(), (Names{"Conv", "Add"}));

  Net open;
  const ValueId unknown =
      open.Op("Conv", {open.Input("x", {1, 2, kUnknownDim, 3}), open.Weight({2, 2, 1, 1})});
  open.graph().outputs = {open.Op("Add", {unknown, open.Input("y", {1, 2, kUnknownDim, 3})})};
  ASSERT_TRUE(FuseEpilogue(kContext, &open.graph()).ok());
  EXPECT_EQ(open.Ops(), (Names{"Conv", "Add"}));
}

TEST(Pipeline, UnknownPassNameIsRefusedWithKnownNames) {
  Module module = Net::EmptyModule();
  const auto reports = RunPasses(kContext, {.disabled = {"fuse_everything"}}, &module);
  EXPECT_EQ(reports.status().code(), Code::kInvalidArgument);
  EXPECT_NE(reports.status().message().find("fuse_epilogue"), std::string::npos);
}

}  // namespace
}  // namespace msrt
