// Scales and shifts before and after layers that can be folded into weights, and those that cannot.
#include "core/passes/fold_scale.h"

#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

TEST(FoldScale, FoldsScalesAfterConvolutions) {
  Net net;
  ValueId v = net.Op("Conv", {net.Input("x", {1, 4, 5, kUnknownDim}), net.Weight({6, 2, 3, 3})},
                     {{"group", int64_t{2}}});
  v = net.Op("Sub", {net.Op("Mul", {net.Weight({6, 1, 1}, 0.5, 2), v}), net.Weight({1, 6, 1, 1})});
  v = net.Op("Div", {net.Op("Add", {v, net.Scalar(0.5)}), net.Scalar(3, {1, 1})});
  net.graph().outputs = {v};
  EXPECT_EQ(OpsAfter(FoldScale, &net, {net.Random({1, 4, 5, 6})}), Names{"Conv"});

  Net up;
  v = up.Op("ConvTranspose", {up.Input("x", {1, 4, 3, 3}), up.Weight({4, 3, 2, 2}), up.Weight({6})},
            {{"group", int64_t{2}}});
  up.graph().outputs = {up.Op("Mul", {v, up.Weight({6, 1, 1})})};
  EXPECT_EQ(OpsAfter(FoldScale, &up, {up.Random({1, 4, 3, 3})}), Names{"ConvTranspose"});
}

TEST(FoldScale, FoldsScalesAfterProducts) {
  Net net;
  ValueId v = net.Op("MatMul", {net.Input("x", {2, kUnknownDim, 4}), net.Weight({4, 3})});
  v = net.Op("Mul", {net.Op("Add", {v, net.Weight({3})}), net.Weight({1, 3})});
  net.graph().outputs = {
      net.Op("Mul", {net.Op("MatMul", {v, net.Weight({3, 5})}), net.Scalar(0.25)})};
  EXPECT_EQ(OpsAfter(FoldScale, &net, {net.Random({2, 3, 4})}), (Names{"MatMul", "Add", "MatMul"}));

  for (const int64_t turned : {0, 1}) {
    Net gemm;
    const ValueId w = gemm.Weight(turned != 0 ? Dims{3, 4} : Dims{4, 3});
    v = gemm.Op("Gemm", {gemm.Input("x", {2, 4}), w, gemm.Weight({1, 3})}, {{"transB", turned}});
    gemm.graph().outputs = {
        gemm.Op("Add", {gemm.Op("Mul", {v, gemm.Weight({3})}), gemm.Weight({3})})};
    EXPECT_EQ(OpsAfter(FoldScale, &gemm, {gemm.Random({2, 4})}), Names{"Gemm"});
  }
}

TEST(FoldScale, FoldsScalesBeforeLayers) {
  Net net;  // (pixels - mean) / deviation
  ValueId v = net.Op("Div", {net.Op("Sub", {net.Input("x", {1, 4, 5, 5}), net.Weight({4, 1, 1})}),
                             net.Weight({1, 4, 1, 1}, 0.5, 2)});
  net.graph().outputs = {
      net.Op("Conv", {v, net.Weight({6, 2, 3, 3}), net.Weight({6})}, {{"group", int64_t{2}}})};
  EXPECT_EQ(OpsAfter(FoldScale, &net, {net.Random({1, 4, 5, 5})}), Names{"Conv"});

  Net padded;  // padding is not shifted: only the quotient is folded
  v = padded.Op("Sub", {padded.Input("x", {1, 4, 5, 5}), padded.Weight({4, 1, 1})});
  v = padded.Op("Div", {v, padded.Weight({4, 1, 1}, 0.5, 2)});
  padded.graph().outputs = {
      padded.Op("Conv", {v, padded.Weight({2, 4, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}})};
  EXPECT_EQ(OpsAfter(FoldScale, &padded, {padded.Random({1, 4, 5, 5})}), (Names{"Sub", "Conv"}));

  Net product;
  v = product.Op("Mul", {product.Input("x", {2, 3, 4}), product.Weight({4})});
  product.graph().outputs = {product.Op("MatMul", {v, product.Weight({4, 5})})};
  EXPECT_EQ(OpsAfter(FoldScale, &product, {product.Random({2, 3, 4})}), Names{"MatMul"});
}

TEST(FoldScale, KeepsConstantsThatAreNotPerChannel) {
  Net row;  // one number for each column of the image
  ValueId v = row.Op("Conv", {row.Input("x", {1, 2, 3, 3}), row.Weight({3, 2, 1, 1})});
  row.graph().outputs = {row.Op("Mul", {v, row.Weight({3})})};
  EXPECT_EQ(OpsAfter(FoldScale, &row, {row.Random({1, 2, 3, 3})}), (Names{"Conv", "Mul"}));

  Net shared;
  v = shared.Op("Conv", {shared.Input("x", {1, 2, 3, 3}), shared.Weight({3, 2, 1, 1})});
  shared.graph().outputs = {shared.Op("Mul", {v, shared.Scalar(2)}), v};
  EXPECT_EQ(OpsAfter(FoldScale, &shared, {shared.Random({1, 2, 3, 3})}), (Names{"Conv", "Mul"}));

  Net quotient;  // c / x and c - x are not scales of x
  v = quotient.Op("Conv", {quotient.Input("x", {1, 2, 3, 3}), quotient.Weight({3, 2, 1, 1})});
  quotient.graph().outputs = {quotient.Op("Sub", {quotient.Scalar(2), v})};
  EXPECT_EQ(OpsAfter(FoldScale, &quotient, {quotient.Random({1, 2, 3, 3})}),
            (Names{"Conv", "Sub"}));

  Net grown;  // the constant adds a dim
  v = grown.Op("MatMul", {grown.Input("x", {2, 3}), grown.Weight({3, 4})});
  grown.graph().outputs = {grown.Op("Mul", {v, grown.Weight({1, 1, 4})})};
  EXPECT_EQ(OpsAfter(FoldScale, &grown, {grown.Random({2, 3})}), (Names{"MatMul", "Mul"}));

  Net huge;  // the weights would overflow, the results do not
  v = huge.Op("MatMul", {huge.Input("x", {1, 2}), huge.Weight({2, 2}, 1e30f, 2e30f)});
  huge.graph().outputs = {huge.Op("Mul", {v, huge.Scalar(1e20)})};
  EXPECT_EQ(
      OpsAfter(FoldScale, &huge, {ConstTensor::Floats({1, 2}, std::vector<float>{1e-30f, 2e-30f})}),
      (Names{"MatMul", "Mul"}));
}

TEST(FoldScale, StaysWithinTheBudget) {
  Net net;
  ValueId v = net.Op("MatMul", {net.Input("x", {1, 8}), net.Weight({8, 8})});
  for (int i = 0; i < 5; ++i) v = net.Op("Mul", {v, net.Scalar(2)});
  net.graph().outputs = {v};
  FoldBudget budget{.bytes = 3 * 8 * 8 * 4};
  ASSERT_TRUE(FoldScale({.evaluator = kContext.evaluator, .folding = &budget}, &net.graph()).ok());
  EXPECT_EQ(net.Ops(), (Names{"MatMul", "Mul", "Mul"}));
}

}  // namespace
}  // namespace msrt::testing
