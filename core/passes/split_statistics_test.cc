// Statistics over rows and columns: in two steps, with the same results.
#include "core/passes/split_statistics.h"

#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"

namespace msrt::testing {
namespace {

using Ints = std::vector<int64_t>;

Status SplitExactly(const PassContext& context, Graph* graph) {
  PassContext exact = context;
  exact.exact = true;
  return SplitStatistics(exact, graph);
}

constexpr int64_t kChannels = 6;
const Dims kImage{1, kChannels, 5, 7};

Names After(const char* op, AttrList attrs, bool parameters = false, Dims dims = kImage) {
  Net net;
  std::vector<ValueId> inputs{net.Input("x", dims)};
  if (parameters) inputs.insert(inputs.end(), {net.Weight({kChannels}), net.Weight({kChannels})});
  net.graph().outputs = {net.Op(op, inputs, std::move(attrs))};
  return OpsAfter(SplitExactly, &net, {net.Random(dims)});
}

TEST(SplitStatistics, ReducesAlongTheLastAxisFirst) {
  EXPECT_EQ(After("GlobalAveragePool", {}), (Names{"ReduceMean", "ReduceMean"}));
  EXPECT_EQ(After("GlobalMaxPool", {}), (Names{"ReduceMax", "ReduceMax"}));
  for (const int64_t keepdims : {0, 1}) {
    EXPECT_EQ(After("ReduceSum", {{"axes", Ints{-1, 2}}, {"keepdims", keepdims}}),
              (Names{"ReduceSum", "ReduceSum"}));
    EXPECT_EQ(After("ReduceMean", {{"keepdims", keepdims}}), (Names{"ReduceMean", "ReduceMean"}));
    EXPECT_EQ(After("ReduceMin", {{"axes", Ints{1, 2}}, {"keepdims", keepdims}}),
              (Names{"ReduceMin", "ReduceMin"}));
  }
  EXPECT_EQ(After("ReduceSum", {{"axes", Ints{3}}}), Names{"ReduceSum"});
}

TEST(SplitStatistics, WritesNormsOfOneImageWithRowMoments) {
  EXPECT_EQ(After("InstanceNormalization", {}, true).back(), "BatchNormalization");
  EXPECT_EQ(After("GroupNormalization", {{"num_groups", int64_t{3}}}, true).back(),
            "BatchNormalization");
  EXPECT_EQ(After("GroupNormalization", {{"num_groups", int64_t{1}}}, true).back(),
            "BatchNormalization");
  EXPECT_EQ(After("InstanceNormalization", {}, true, {2, kChannels, 5, 7}),
            Names{"InstanceNormalization"});
}

TEST(SplitStatistics, WritesSoftmaxOverAllPositionsByRows) {
  Net net;
  const ValueId flat =
      net.Op("Reshape", {net.Input("x", kImage)}, {{"shape", Ints{1, kChannels, -1}}});
  net.graph().outputs = {net.Op("Softmax", {flat})};
  ConstTensor image = net.Random(kImage, -30, 30);
  const Names ops = OpsAfter(SplitExactly, &net, {image});
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "Softmax"), 0);
  EXPECT_EQ(ops.back(), "Reshape");
}

TEST(SplitStatistics, RunsInExactModeOnly) {
  Net net;
  net.graph().outputs = {net.Op("GlobalAveragePool", {net.Input("x", kImage)})};
  EXPECT_EQ(OpsAfter(SplitStatistics, &net, {net.Random(kImage)}), Names{"GlobalAveragePool"});
}

}  // namespace
}  // namespace msrt::testing
