// Attention in the forms that exporters write, and similar chains that are not attention.
#include "core/passes/recognize_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// 2 batches, 3 heads of width 4, 5 queries, 6 keys.
struct AttentionNet : Net {
  int64_t batch, rows, keys;
  ValueId x, y;
  explicit AttentionNet(bool open = false)
      : batch(open ? module.SymbolFor("batch") : 2),
        rows(open ? module.SymbolFor("rows") : 5),
        keys(open ? module.SymbolFor("keys") : 6) {
    x = Input("x", {batch, rows, 12});
    y = Input("y", {batch, keys, 12});
  }
  ValueId Turn(ValueId v, Ints perm) { return Op("Transpose", {v}, {{"perm", std::move(perm)}}); }
  ValueId Split(ValueId v, Ints perm) {
    return Turn(Op("Reshape", {v}, {{"shape", Ints{0, 0, 3, 4}}}), std::move(perm));
  }
  ValueId Query() { return Split(x, {0, 2, 1, 3}); }
  ValueId TurnedKey() { return Split(y, {0, 2, 3, 1}); }
  ValueId Values() { return Split(Op("Neg", {y}), {0, 2, 1, 3}); }
  ValueId Merge(ValueId v) {
    return Op("Reshape", {Turn(v, {0, 2, 1, 3})}, {{"shape", Ints{0, 0, 12}}});
  }
  ValueId Softmax(ValueId v, int64_t axis = -1) { return Op("Softmax", {v}, {{"axis", axis}}); }
  ValueId Half(ValueId v) { return Op("Mul", {v, Scalar(0.5)}); }
  std::vector<ConstTensor> Feeds() { return {Random({2, 5, 12}), Random({2, 6, 12})}; }
  Names After(ValueId output, std::vector<ConstTensor> more = {}) {
    graph().outputs.insert(graph().outputs.begin(), output);
    std::vector<ConstTensor> inputs = Feeds();
    inputs.insert(inputs.end(), more.begin(), more.end());
    return OpsAfter(RecognizeAttention, this, inputs);
  }
};

const Names kPacked{"Neg", "Attention"}, kPackedWithNan{"Neg", "msrt.FusedAttention"};

TEST(RecognizeAttention, RecognizesAddedMask) {
  for (const bool open : {false, true}) {
    AttentionNet net(open);
    const ValueId mask = net.Input("mask", {net.batch, 1, 1, net.keys});
    const ValueId scores =
        net.Op("Div", {net.Op("MatMul", {net.Query(), net.TurnedKey()}), net.Scalar(2)});
    const ValueId weights = net.Softmax(net.Op("Add", {scores, mask}));
    EXPECT_EQ(net.After(net.Merge(net.Op("MatMul", {weights, net.Values()})),
                        {net.Random({2, 1, 1, 6}, -3, 0)}),
              kPackedWithNan);
    EXPECT_EQ(net.graph().nodes[1].inputs.size(), 4u);
  }
}

// torch.nn.functional.scaled_dot_product_attention: both sides scaled, a guard for rows without
// visible keys.
TEST(RecognizeAttention, RecognizesScalesOnBothSidesAndGuard) {
  AttentionNet net;
  const ValueId mask = net.graph().AddInput("mask", Type::Tensor(DType::kBool, {5, 6}));
  const ValueId added = net.Op("Where", {mask, net.Scalar(0), net.Scalar(kMinusInfinity)});
  const double root = std::sqrt(0.5);
  const ValueId q = net.Op("Mul", {net.Query(), net.Scalar(root)}),
                k = net.Op("Mul", {net.TurnedKey(), net.Scalar(root)});
  const ValueId weights = net.Softmax(net.Op("Add", {net.Op("MatMul", {q, k}), added}));
  const ValueId guarded = net.Op("Where", {net.Op("IsNaN", {weights}), net.Scalar(0), weights});
  std::vector<uint8_t> seen(30, 1);
  std::fill(seen.begin() + 6, seen.begin() + 12, uint8_t{0});  // the second row has no visible keys
  const ConstTensor seen_keys = ConstTensor::Of<uint8_t>(DType::kBool, {5, 6}, seen);
  EXPECT_EQ(net.After(net.Merge(net.Op("MatMul", {guarded, net.Values()})), {seen_keys}), kPacked);
  EXPECT_EQ(net.graph().nodes[1].inputs[3], mask);
}

TEST(RecognizeAttention, RecognizesBoolMask) {
  AttentionNet net;
  const ValueId mask = net.graph().AddInput("mask", Type::Tensor(DType::kBool, {1, 1, 5, 6}));
  const ValueId scores = net.Half(net.Op("MatMul", {net.Query(), net.TurnedKey()}));
  const ValueId weights = net.Softmax(net.Op("Where", {mask, scores, net.Scalar(kMinusInfinity)}));
  std::vector<uint8_t> seen(30, 1);
  seen[3] = seen[7] = seen[8] = 0;
  EXPECT_EQ(net.After(net.Merge(net.Op("MatMul", {weights, net.Values()})),
                      {ConstTensor::Of<uint8_t>(DType::kBool, {1, 1, 5, 6}, seen)}),
            kPackedWithNan);
}

// masked_fill, which selects hidden keys, and an added mask.
TEST(RecognizeAttention, RecognizesBothKindsOfMask) {
  for (const bool added : {false, true}) {
    AttentionNet net;
    const ValueId hidden = net.graph().AddInput("hidden", Type::Tensor(DType::kBool, {1, 1, 5, 6}));
    const ValueId mask = net.Input("mask", {2, 1, 1, 6});
    const ValueId scores = net.Half(net.Op("MatMul", {net.Query(), net.TurnedKey()}));
    ValueId masked = net.Op("Where", {hidden, net.Scalar(kMinusInfinity), scores});
    if (added) masked = net.Op("Add", {mask, masked});
    std::vector<uint8_t> hides(30, 0);
    hides[3] = hides[7] = hides[8] = 1;
    const Names ops = net.After(net.Merge(net.Op("MatMul", {net.Softmax(masked), net.Values()})),
                                {ConstTensor::Of<uint8_t>(DType::kBool, {1, 1, 5, 6}, hides),
                                 net.Random({2, 1, 1, 6}, -3, 0)});
    EXPECT_EQ(ops, (Names{"Neg", added ? "Where" : "Not", "msrt.FusedAttention"}));
  }
}

// The softmax of a row of minus infinities is NaN, and stays NaN without a guard; Attention returns
// zeros there.
TEST(RecognizeAttention, HiddenRowsStayNan) {
  for (const bool added : {false, true}) {
    AttentionNet net;
    const ValueId mask = net.graph().AddInput("mask", Type::Tensor(DType::kBool, {5, 6}));
    ValueId scores = net.Half(net.Op("MatMul", {net.Query(), net.TurnedKey()}));
    if (added)
      scores = net.Op("Add",
                      {scores, net.Op("Where", {mask, net.Scalar(0), net.Scalar(kMinusInfinity)})});
    else scores = net.Op("Where", {mask, scores, net.Scalar(kMinusInfinity)});
    std::vector<uint8_t> seen(30, 1);
    std::fill(seen.begin() + 6, seen.begin() + 12, uint8_t{0});
    const ConstTensor seen_keys = ConstTensor::Of<uint8_t>(DType::kBool, {5, 6}, seen);
    const ValueId merged = net.Merge(net.Op("MatMul", {net.Softmax(scores), net.Values()}));
    EXPECT_EQ(net.After(merged, {seen_keys}), kPackedWithNan);
    std::vector<ConstTensor> inputs = net.Feeds();
    inputs.push_back(seen_keys);
    const auto outputs = RunModule(net.module, inputs, {"reference"}, {"all"});
    ASSERT_TRUE(outputs.ok());
    EXPECT_TRUE(std::isnan((*outputs)[0].As<float>()[12]));
    EXPECT_FALSE(std::isnan((*outputs)[0].As<float>()[0]));
  }
}

// Batch, rows and heads come from Shape nodes, and the mask has dims that only they name.
TEST(RecognizeAttention, RecognizesOpenDimsFromShapes) {
  AttentionNet net(true);
  const auto dim = [&](ValueId v, int64_t at) {
    return net.Op("Shape", {v}, {{"start", at}, {"end", at + 1}});
  };
  const auto split = [&](ValueId v, Ints perm) {
    const ValueId shape = net.Op("Concat", {dim(v, 0), dim(v, 1), net.List({-1}), net.List({4})},
                                 {{"axis", int64_t{0}}});
    return net.Turn(net.Op("Reshape", {v, shape}), std::move(perm));
  };
  const ValueId zero = net.graph().AddConstant(
      "zero", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{0}));
  const ValueId one = net.graph().AddConstant(
      "one", ConstTensor::Of<int64_t>(DType::kI64, {}, std::vector<int64_t>{1}));
  const auto count = [&](ValueId v, int64_t at) {
    return net.Op("Range", {zero, net.Op("Squeeze", {dim(v, at)}), one});
  };
  const ValueId earlier =
      net.Op("LessOrEqual", {net.Op("Unsqueeze", {count(net.y, 1), net.List({0})}),
                             net.Op("Unsqueeze", {count(net.x, 1), net.List({1})})});
  const ValueId scores =
      net.Half(net.Op("MatMul", {split(net.x, {0, 2, 1, 3}), split(net.y, {0, 2, 3, 1})}));
  const ValueId weights =
      net.Softmax(net.Op("Where", {earlier, scores, net.Scalar(kMinusInfinity)}));
  const ValueId out = net.Turn(
      net.Op("MatMul", {weights, split(net.Op("Neg", {net.y}), {0, 2, 1, 3})}), {0, 2, 1, 3});
  const ValueId merged =
      net.Op("Reshape", {out, net.Op("Concat", {dim(net.x, 0), dim(net.x, 1), net.List({-1})},
                                     {{"axis", int64_t{0}}})});
  net.graph().outputs = {net.Op("Relu", {merged})};
  ExpectSameResults(net.module, net.Feeds());
  ASSERT_TRUE(RunPasses(kContext, {.disabled = {}, .validate = true}, &net.module).ok());
  const Names ops = net.Ops();
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "msrt.FusedAttention"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Transpose"), 0);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Reshape"), 0);
}

// Llama: two heads of keys and values, each repeated for the queries of a group.
TEST(RecognizeAttention, RecognizesRepeatedHeads) {
  for (const bool alike : {true, false}) {
    AttentionNet net;
    const ValueId q = net.Input("q", {2, 4, 5, 4}), k = net.Input("k", {2, 2, 6, 4}),
                  v = net.Input("v", {2, alike ? 2 : 1, 6, 4});
    const auto repeat = [&](ValueId heads) {
      const int64_t count = net.graph().value(heads).type.dims[1];
      const ValueId wide = net.Op("Expand", {net.Op("Unsqueeze", {heads, net.List({2})}),
                                             net.List({2, count, 4 / count, 6, 4})});
      return net.Op("Reshape", {wide}, {{"shape", Ints{2, 4, 6, 4}}});
    };
    const ValueId weights =
        net.Softmax(net.Half(net.Op("MatMul", {q, net.Turn(repeat(k), {0, 1, 3, 2})})));
    const Names ops = net.After(
        net.Op("MatMul", {weights, repeat(v)}),
        {net.Random({2, 4, 5, 4}), net.Random({2, 2, 6, 4}), net.Random({2, alike ? 2 : 1, 6, 4})});
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "Attention"), 1);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "Expand"), alike ? 0 : 2);
  }
}

// MaxViT: windows are a second batch dim, the keys are scaled before the transpose, and all heads
// come from one product.
TEST(RecognizeAttention, RecognizesBatchesOfTwoDims) {
  Net net;
  const int64_t batch = net.module.SymbolFor("batch");
  const ValueId x = net.Input("x", {batch, 2, 5, 12}), bias = net.Weight({1, 3, 5, 5});
  const auto heads = [&](ValueId v, Ints perm) {
    const ValueId apart = net.Op("Reshape", {v}, {{"shape", Ints{-1, 2, 5, 3, 4}}});
    return net.Op("Transpose", {apart}, {{"perm", std::move(perm)}});
  };
  const ValueId q = heads(net.Op("Relu", {x}), {0, 1, 3, 2, 4}),
                v = heads(net.Op("Neg", {x}), {0, 1, 3, 2, 4});
  const ValueId k = net.Op("Mul", {heads(x, {0, 1, 3, 2, 4}), net.Scalar(0.5)});
  const ValueId scores =
      net.Op("Einsum", {q, k}, {{"equation", std::string("B G H I D, B G H J D -> B G H I J")}});
  const ValueId weights =
      net.Op("Softmax", {net.Op("Add", {scores, bias})}, {{"axis", int64_t{-1}}});
  const ValueId attended =
      net.Op("Einsum", {weights, v}, {{"equation", std::string("BGHIJ,BGHJD->BGHID")}});
  const ValueId merged = net.Op("Transpose", {attended}, {{"perm", Ints{0, 1, 3, 2, 4}}});
  net.graph().outputs = {
      net.Op("Relu", {net.Op("Reshape", {merged}, {{"shape", Ints{-1, 2, 5, 12}}})})};
  ExpectSameResults(net.module, {net.Random({3, 2, 5, 12})});
  ASSERT_TRUE(RunPasses(kContext, {.disabled = {}, .validate = true}, &net.module).ok());
  const Names ops = net.Ops();
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "msrt.FusedAttention"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Transpose"), 0);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Mul"), 0);
}

// Swin v2: each head has its own scale.
TEST(RecognizeAttention, RecognizesScaleForEachHead) {
  AttentionNet net;
  const ValueId scores =
      net.Op("Mul", {net.Op("MatMul", {net.Query(), net.TurnedKey()}), net.Weight({3, 1, 1})});
  const Names ops = net.After(net.Merge(net.Op("MatMul", {net.Softmax(scores), net.Values()})));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Attention"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Softmax"), 0);
}

// Keys joined with a cache are not packed: the Attention takes them unchanged.
TEST(RecognizeAttention, RecognizesPastKeys) {
  AttentionNet net;
  const ValueId past = net.Input("past", {2, 3, 2, 4});
  const auto longer = [&](ValueId v) {
    return net.Op("Concat", {past, v}, {{"axis", int64_t{2}}});
  };
  const ValueId k = net.Turn(longer(net.Split(net.y, {0, 2, 1, 3})), {0, 1, 3, 2});
  const ValueId weights = net.Softmax(net.Half(net.Op("MatMul", {net.Query(), k})), 3);
  const Names ops = net.After(net.Merge(net.Op("MatMul", {weights, longer(net.Values())})),
                              {net.Random({2, 3, 2, 4})});
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Attention"), 1);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Softmax"), 0);
}

TEST(RecognizeAttention, KeepsOtherChains) {
  const auto stays = [](AttentionNet* net, ValueId output, std::vector<ConstTensor> more = {}) {
    const Names ops = net->After(output, std::move(more));
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "Attention"), 0);
    EXPECT_EQ(std::count(ops.begin(), ops.end(), "Softmax"), 1);
  };
  AttentionNet axis;  // over queries
  stays(&axis,
        axis.Op("MatMul", {axis.Softmax(axis.Op("MatMul", {axis.Query(), axis.TurnedKey()}), 2),
                           axis.Values()}));

  AttentionNet shared;  // the weights have another use
  const ValueId weights = shared.Softmax(shared.Op("MatMul", {shared.Query(), shared.TurnedKey()}));
  shared.graph().outputs = {weights};
  stays(&shared, shared.Op("MatMul", {weights, shared.Values()}));

  AttentionNet negative;
  const ValueId turned = negative.Op(
      "Mul",
      {negative.Op("MatMul", {negative.Query(), negative.TurnedKey()}), negative.Scalar(-0.5)});
  stays(&negative, negative.Op("MatMul", {negative.Softmax(turned), negative.Values()}));

  AttentionNet wide;  // the mask has more batches than the scores
  const ValueId mask = wide.Input("mask", {4, 2, 3, 5, 6});
  const ValueId masked =
      wide.Op("Add", {wide.Op("MatMul", {wide.Query(), wide.TurnedKey()}), mask});
  stays(&wide, wide.Op("MatMul", {wide.Softmax(masked), wide.Values()}),
        {wide.Random({4, 2, 3, 5, 6})});

  AttentionNet one;  // one head of values for all heads of scores
  const ValueId values = one.Input("values", {2, 1, 6, 4});
  stays(&one,
        one.Op("MatMul", {one.Softmax(one.Op("MatMul", {one.Query(), one.TurnedKey()})), values}),
        {one.Random({2, 1, 6, 4})});

  AttentionNet finite;  // hidden keys still count a little
  const ValueId keep = finite.graph().AddInput("keep", Type::Tensor(DType::kBool, {5, 6}));
  const ValueId chosen = finite.Op(
      "Where",
      {keep, finite.Op("MatMul", {finite.Query(), finite.TurnedKey()}), finite.Scalar(-1)});
  stays(&finite, finite.Op("MatMul", {finite.Softmax(chosen), finite.Values()}),
        {ConstTensor::Of<uint8_t>(DType::kBool, {5, 6}, std::vector<uint8_t>(30, 0))});
}

TEST(RecognizeAttention, UnnamedOpenDimsProveNothing) {
  AttentionNet net;
  const ValueId mask =
      net.Input("mask", {kUnknownDim, 1, 5, 6});  // may have more batches than the scores
  const ValueId masked = net.Op("Add", {net.Op("MatMul", {net.Query(), net.TurnedKey()}), mask});
  const Names ops =
      net.After(net.Op("MatMul", {net.Softmax(masked), net.Values()}), {net.Random({2, 1, 5, 6})});
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Softmax"), 1);
}

}  // namespace
}  // namespace msrt::testing
