// Covers what the op cases cannot show: bad uses that inference refuses.
#include "ops/infer_testing.h"

namespace msrt::testing {
namespace {

TEST(NormalizationInfer, RefusesBadShapes) {
  ExpectRefused(NodeOf("", "BatchNormalization", {},
                       {F32({2, 3, 4}), F32({3}), F32({3}), F32({3}), F32({4})}),
                "input 4");
  ExpectRefused(NodeOf("", "BatchNormalization", {},
                       {F32({2, 3}), F32({3}), F32({3}), F32({3, 1}), F32({3})}),
                "rank 1");
  ExpectRefused(
      NodeOf("", "BatchNormalization", {}, {F32({}), F32({1}), F32({1}), F32({1}), F32({1})}),
      "rank 1 or more");
  ExpectRefused(NodeOf("", "BatchNormalization", {{"training_mode", int64_t{1}}},
                       {F32({2, 3}), F32({3}), F32({3}), F32({3}), F32({3})}),
                "training_mode");
  ExpectRefused(NodeOf("", "InstanceNormalization", {}, {F32({2, 3}), F32({3}), F32({3})}),
                "rank 3");
  ExpectRefused(NodeOf("", "InstanceNormalization", {{"epsilon", -1.0}},
                       {F32({2, 3, 4}), F32({3}), F32({3})}),
                "epsilon");
  ExpectRefused(NodeOf("", "GroupNormalization", {{"num_groups", int64_t{4}}},
                       {F32({2, 6, 4}), F32({6}), F32({6})}),
                "num_groups");
  ExpectRefused(NodeOf("", "GroupNormalization", {{"num_groups", int64_t{0}}},
                       {F32({2, 6, 4}), F32({6}), F32({6})}),
                "num_groups");
  ExpectRefused(NodeOf("", "GroupNormalization", {}, {F32({2, 6, 4}), F32({6}), F32({6})}),
                "num_groups");
  ExpectRefused(NodeOf("", "LayerNormalization", {{"axis", int64_t{2}}}, {F32({2, 6}), F32({6})}),
                "axis");
  ExpectRefused(NodeOf("", "LayerNormalization", {}, {F32({2, 6}), F32({2})}), "Scale");
  ExpectRefused(NodeOf("", "LayerNormalization", {}, {F32({2, 6}), F32({6}), F32({1, 2, 6})}),
                "B has shape");
  ExpectRefused(
      NodeOf("", "LayerNormalization", {{"stash_type", DType::kI32}}, {F32({2, 6}), F32({6})}),
      "stash_type");
  ExpectRefused(NodeOf("", "RMSNormalization", {}, {F32({2, 6}), F32({5})}), "Scale");
  ExpectRefused(NodeOf("", "LpNormalization", {{"p", int64_t{3}}}, {F32({2, 6})}), "p = 3");
  ExpectRefused(NodeOf("", "MeanVarianceNormalization", {}, {F32({2, 6})}), "axes");
  ExpectRefused(NodeOf("", "MeanVarianceNormalization", {{"axes", std::vector<int64_t>{0, -2}}},
                       {F32({2, 6})}),
                "twice");
  ExpectRefused(NodeOf("", "Softmax", {}, {F32({})}), "axis");
  ExpectRefused(NodeOf("", "Softmax", {{"axis", int64_t{2}}}, {F32({2, 3})}), "axis");
}

TEST(NormalizationInfer, ParametersMakeChannelsKnown) {
  const Type x = F32({SymbolDim(0), kUnknownDim, 4});
  EXPECT_EQ(Inferred(NodeOf("", "InstanceNormalization", {}, {x, F32({3}), F32({kUnknownDim})})),
            "f32[s0, 3, 4]");
}

TEST(NormalizationInfer, StatisticsHaveTheStashType) {
  const TypedNode node =
      NodeOf("", "LayerNormalization", {{"axis", int64_t{1}}}, {F32({2, 3, 4}), F32({3, 4})}, 3);
  EXPECT_EQ(Inferred(node, 1), "f32[2, 1, 1]");
  TypedNode narrow = node;
  narrow.attrs.Set("stash_type", DType::kBF16);
  EXPECT_EQ(Inferred(narrow, 2), "bf16[2, 1, 1]");
}

}  // namespace
}  // namespace msrt::testing
