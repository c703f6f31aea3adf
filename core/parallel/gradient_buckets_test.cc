#include "core/parallel/gradient_buckets.h"

#include <gtest/gtest.h>

#include "ops/builder.h"

namespace msrt {
namespace {

class GroupReductionsTest : public ::testing::Test {
 protected:
  ValueId Input(Dims dims) {
    return graph_.AddInput(StrCat("x", graph_.inputs.size()), Type::Tensor(DType::kF32, dims));
  }
  ValueId Add(std::string_view domain, std::string_view op, std::vector<ValueId> inputs,
              AttrList attrs = {}) {
    auto made = GraphBuilder(&graph_).Add(domain, op, StrCat(op, graph_.nodes.size()),
                                          std::move(inputs), std::move(attrs), 1);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? (*made)[0] : kNoValue;
  }
  ValueId Reduce(ValueId v) {
    return Add("msrt", "AllReduce", {Add("", "Neg", {v})}, {{"order", std::string("shards")}});
  }
  // The ops in order; those of buckets with the number of tensors.
  std::string Ops() const {
    std::string text;
    for (const Node& node : graph_.nodes) {
      StrAppend(&text, text.empty() ? "" : " ", node.op);
      if (node.outputs.size() > 1) StrAppend(&text, node.outputs.size());
    }
    return text;
  }
  Graph graph_;
};

TEST_F(GroupReductionsTest, BucketsAreFilledInTheOrderOfTheGraph) {
  std::vector<ValueId> sums;
  for (int i = 0; i < 5; ++i) sums.push_back(Reduce(Input({8})));  // 32 bytes each
  graph_.outputs = {Add("", "Sum", sums)};
  EXPECT_EQ(GroupReductions(64, &graph_), 2);
  EXPECT_EQ(Ops(), "Neg Neg AllReduce2 Neg Neg AllReduce2 Neg AllReduce Sum");
  const Node& bucket = graph_.nodes[2];
  EXPECT_EQ(bucket.outputs, (std::vector<ValueId>{sums[0], sums[1]}));
  EXPECT_EQ(std::get<int64_t>(*bucket.attrs.Find("tensors")), 2);
}

// A statistic is needed before the next reduction begins.
TEST_F(GroupReductionsTest, StatisticsDoNotWaitForOthers) {
  const ValueId first = Reduce(Input({8}));
  const ValueId statistic = Reduce(Input({8}));
  const ValueId used = Add("", "Exp", {Add("", "Mul", {statistic, Input({8})})});
  const ValueId second = Reduce(used);
  graph_.outputs = {Add("", "Sum", {first, second})};
  EXPECT_EQ(GroupReductions(1 << 20, &graph_), 1);
  EXPECT_EQ(Ops(), "Neg Neg AllReduce Mul Exp Neg AllReduce2 Sum");
}

TEST_F(GroupReductionsTest, ACastOfAGradientWaitsForItsUse) {
  const auto cast = [&](ValueId v) { return Add("", "Cast", {v}, {{"to", DType::kF64}}); };
  const ValueId first = cast(Reduce(Input({8})));
  const ValueId second = cast(Reduce(Input({8})));
  graph_.outputs = {Add("", "Sum", {first, second})};
  EXPECT_EQ(GroupReductions(1 << 20, &graph_), 1);
  EXPECT_EQ(Ops(), "Neg Neg AllReduce2 Cast Cast Sum");
}

// The result of one is needed for the other.
TEST_F(GroupReductionsTest, ReductionsThatDependOnEachOtherStayApart) {
  const ValueId first = Reduce(Input({8}));
  const ValueId other = Reduce(Input({8}));
  const ValueId last = Reduce(Add("", "Mul", {first, Input({8})}));
  graph_.outputs = {Add("", "Sum", {other, last})};
  GroupReductions(1 << 20, &graph_);
  EXPECT_EQ(Ops(), "Neg Neg AllReduce2 Mul Neg AllReduce Sum");
}

TEST_F(GroupReductionsTest, OtherReductionsAndTypesHaveBucketsOfTheirOwn) {
  const ValueId sum = Reduce(Input({8}));
  const ValueId most = Add("msrt", "AllReduce", {Input({8})},
                           {{"order", std::string("shards")}, {"reduce", std::string("max")}});
  const ValueId number = Reduce(Input({8}));
  const ValueId peak = Add("msrt", "AllReduce", {Input({8})},
                           {{"order", std::string("shards")}, {"reduce", std::string("max")}});
  graph_.outputs = {Add("", "Sum", {sum, most, number, peak})};
  EXPECT_EQ(GroupReductions(1 << 20, &graph_), 2);
  EXPECT_EQ(Ops(), "Neg Neg AllReduce2 AllReduce2 Sum");
}

}  // namespace
}  // namespace msrt
