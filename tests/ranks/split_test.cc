// Small graphs on several ranks: equal bits, planned traffic, refusals.
#include <gtest/gtest.h>

#include "core/passes/passes_testing.h"
#include "tests/ranks/rank_runs.h"

namespace msrt::testing {
namespace {

CompileOptions Reference() {
  CompileOptions options;
  options.place.delegates = {"reference"};
  return options;
}

// Two 3x3 convolutions.
Net Chain(const Dims& image) {
  Net net;
  ValueId v = net.Input("x", image);
  for (int i = 0; i < 2; ++i)
    v = net.Op("Conv", {v, net.Weight({3, 3, 3, 3})}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  net.graph().outputs = {v};
  return net;
}

TEST(Split, AChainOfConvolutionsHasTheBitsOfTheWhole) {
  const Dims image{1, 3, 11, 9};
  Net net = Chain(image);
  const std::vector<ConstTensor> inputs{net.Random(image)};
  for (const HaloRule halos : {HaloRule::kExchange, HaloRule::kRecompute, HaloRule::kByCost}) {
    for (const OverlapRule overlap : {OverlapRule::kNever, OverlapRule::kAlways}) {
      for (const std::vector<int>& parts :
           std::vector<std::vector<int>>{{1}, {2}, {3}, {8}, {2, 2}, {3, 2}, {1, 4}}) {
        SplitOptions split{.parts = parts, .halos = halos, .overlap = overlap};
        EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split), "")
            << parts[0] << " " << static_cast<int>(halos) << static_cast<int>(overlap);
      }
    }
  }
}

TEST(Split, OneWiderHaloReplacesTwoExchanges) {
  const Dims image{1, 3, 12, 8};
  Net net = Chain(image);
  const std::vector<ConstTensor> inputs{net.Random(image)};
  SplitOptions split{.parts = {2}, .halos = HaloRule::kExchange, .overlap = OverlapRule::kNever};
  ExchangeTotals each, one, cheap, dear;
  EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split, &each), "");
  EXPECT_EQ(each.exchanges, 4);  // two for each rank
  EXPECT_EQ(each.bytes_sent, 2 * 2 * 3 * 8 * 4);
  split.halos = HaloRule::kRecompute;
  EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split, &one), "");
  EXPECT_EQ(one.exchanges, 2);
  EXPECT_EQ(one.bytes_sent, 2 * 2 * 3 * 8 * 4);  // two rows at once
  EXPECT_EQ(one.messages_sent, 2);
  split.halos = HaloRule::kByCost;
  split.costs.message_seconds = 1;
  EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split, &dear), "");
  EXPECT_EQ(dear.exchanges, 2);
  split.costs.message_seconds = 0, split.costs.link_bytes_per_second = 1e15;
  EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split, &cheap), "");
  EXPECT_EQ(cheap.exchanges, 4);
}

TEST(Split, InputsWithTheirHalosAreNotExchanged) {
  const Dims image{1, 3, 12, 8};
  Net net = Chain(image);
  const std::vector<ConstTensor> inputs{net.Random(image)};
  SplitOptions split{.parts = {2, 2}, .inputs = InputRule::kRequired};
  split.halos = HaloRule::kRecompute;
  ExchangeTotals totals;
  EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split, &totals), "");
  EXPECT_EQ(totals.exchanges, 0);
}

// The results of two ranks are alike; one of them delivers.
TEST(Split, AnOutputThatIsNotCutIsWrittenOnce) {
  const Dims image{1, 3, 12, 8};
  Net net = Chain(image);
  const ValueId y = net.graph().outputs[0];
  net.graph().outputs.push_back(net.Op("GlobalAveragePool", {y}));
  net.graph().outputs.push_back(net.Op("ReduceMax", {y}, {{"axes", std::vector<int64_t>{3}}}));
  const std::vector<ConstTensor> inputs{net.Random(image)};
  for (const std::vector<int>& parts : std::vector<std::vector<int>>{{2}, {2, 2}, {1, 3}})
    EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), {.parts = parts}), "");
}

TEST(Split, EveryRankSendsWhatThePlanSays) {
  const Dims image{1, 3, 11, 9};
  Net net = Chain(image);
  const std::vector<ConstTensor> inputs{net.Random(image)};
  SplitOptions split{.parts = {3, 2}, .halos = HaloRule::kExchange};
  const auto whole = RunWhole(net.module, inputs, Reference());
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const SplitRun run = RunSplit(net.module, inputs, Reference(), split, *whole);
  ASSERT_TRUE(run.status.ok()) << run.status.message();
  for (int r = 0; r < 6; ++r) {
    const auto plan =
        CompileRank(RankEnvironment(), net.module, 0, {&image, 1}, Reference(), split, r);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const ExchangeTotals& sent = run.reports[static_cast<size_t>(r)].exchanges;
    EXPECT_EQ(sent.bytes_sent, plan->split.bytes_sent) << r;
    EXPECT_EQ(sent.messages_sent, plan->split.messages_sent) << r;
    EXPECT_EQ(sent.exchanges, plan->split.exchanges) << r;
    EXPECT_GT(sent.bytes_sent, 0) << r;
  }
}

std::string Refusal(const Module& module, const Dims& image, const SplitOptions& split) {
  const auto model = CompileRank(RankEnvironment(), module, 0, {&image, 1}, Reference(), split, 0);
  return model.ok() ? "accepted" : std::string(model.status().message());
}

TEST(Split, MorePartsThanRowsAreRefused) {
  const Dims image{1, 3, 5, 9};
  Net net = Chain(image);
  const auto refusal = [&](const SplitOptions& split) { return Refusal(net.module, image, split); };
  EXPECT_EQ(refusal({.parts = {5}}), "accepted");
  EXPECT_NE(refusal({.parts = {6}}).find("cannot be split into 6 parts; use at most 5"),
            std::string::npos)
      << refusal({.parts = {6}});
  EXPECT_NE(refusal({.parts = {2, 10}}).find("dim 3 cannot be split into 10 parts"),
            std::string::npos);
  EXPECT_NE(refusal({.parts = {2}, .dims = {0}}).find("no input has more than one element"),
            std::string::npos);
  EXPECT_NE(refusal({.parts = {0}}).find("at least 1"), std::string::npos);
  EXPECT_NE(refusal({.parts = {1 << 10, 1 << 10}}).find("65536"), std::string::npos);
  EXPECT_NE(refusal({.parts = {2}, .shares = {{1, -1}}}).find("none negative"), std::string::npos);
  EXPECT_NE(refusal({.parts = {1, 1, 1}}).find("dims for 2"), std::string::npos);
}

// A layer of fewer rows than parts has ranks without work.
TEST(Split, LayersWithFewerRowsThanPartsAreSplit) {
  const Dims image{1, 2, 9, 8};
  Net net;
  const ValueId x = net.Input("x", image);
  const ValueId small = net.Op(
      "MaxPool", {x},
      {{"kernel_shape", std::vector<int64_t>{4, 4}}, {"strides", std::vector<int64_t>{4, 4}}});
  const ValueId large = net.Op("Resize", {small}, {{"sizes", std::vector<int64_t>{1, 2, 9, 8}}});
  net.graph().outputs = {small, net.Op("Add", {large, x})};
  const std::vector<ConstTensor> inputs{net.Random(image)};
  for (const std::vector<int>& parts : std::vector<std::vector<int>>{{8}, {4, 2}, {1, 8}})
    EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), {.parts = parts}), "");
}

TEST(Split, CutsAreMultiplesOfTheGranule) {
  const Dims image{1, 3, 22, 9};
  Net net = Chain(image);
  const std::vector<ConstTensor> inputs{net.Random(image)};
  const SplitOptions split{.parts = {3}, .granules = {{1, 1, 4}, {1, 1, 4}}};
  EXPECT_EQ(CompareWithWhole(net.module, inputs, Reference(), split), "");
  int64_t next = 0;
  for (int r = 0; r < 3; ++r) {
    const auto model =
        CompileRank(RankEnvironment(), net.module, 0, {&image, 1}, Reference(), split, r);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Interval rows = model->split.outputs[0][2];
    EXPECT_EQ(rows.begin, next);
    EXPECT_EQ(rows.begin % 4, 0);
    next = rows.end;
  }
  EXPECT_EQ(next, 22);
}

}  // namespace
}  // namespace msrt::testing
