// Placement reports of chains of nodes on two delegates with fixed costs.
#include "core/program/explain.h"

#include <gtest/gtest.h>

#include "core/delegate/fake_delegate.h"
#include "delegates/builtin.h"
#include "ops/builder.h"

namespace msrt {
namespace {

using testing::FakeDelegate;
using testing::MakeFake;

// A chain of nodes on two delegates: the slow one supports all nodes; the fast one supports only
// Relu, in another layout.
class PlacementReportTest : public ::testing::Test {
 protected:
  Graph graph;
  FakeDelegate fast{.name = "fast", .offers = {}}, slow{.name = "slow", .offers = {}};

  std::unique_ptr<Program> Place(const std::vector<std::string>& ops,
                                 const std::vector<std::string>& names) {
    graph.name = "main";
    GraphBuilder builder(&graph);
    ValueId v = graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 4, 4}));
    for (uint32_t n = 0; n < ops.size(); ++n) {
      auto next = builder.Add(ops[n], names[n], {v});
      EXPECT_TRUE(next.ok()) << next.status().message();
      v = *next;
      slow.offers.push_back(Offer(n, Layout::kPlain, 1e-3));
      if (ops[n] != "Relu") continue;
      fast.offers.push_back(Offer(n, Layout::kChannelsLast, 10e-6));
      fast.offers.back().arithmetic = "rounded";
    }
    graph.outputs = {v};
    const Dims typical[] = {{1, 8, 4, 4}};
    auto offered = OfferedGraph::Make(graph, BuiltinEvaluator(), typical);
    auto host =
        std::make_shared<const Host>(DefaultAllocator(), MakeSerial(), Log(), Machine{1e11, 40e9});
    const std::shared_ptr<const Delegate> delegates[] = {MakeFake(fast), MakeFake(slow)};
    double millis = 0;
    UploadedConstants uploads;
    auto program =
        MakeProgram(*std::move(offered), std::move(host), delegates, {}, {}, &uploads, &millis);
    EXPECT_TRUE(program.ok()) << program.status().message();
    return *std::move(program);
  }

 private:
  static Candidate Offer(uint32_t node, Layout layout, double seconds) {
    Candidate c;
    c.nodes = {node};
    c.input_layouts = c.output_layouts = {layout};
    c.seconds = seconds;
    c.algorithm = "fixed";
    return c;
  }
};

TEST_F(PlacementReportTest, TextIsATable) {
  const auto program = Place({"Relu", "Relu", "Exp"}, {"first", "second <&>\x1B", "last"});
  // 512 bytes: a layout change takes 3 us + 1,024 bytes at a fifth of 40 GB/s.
  EXPECT_EQ(
      PlacementText(MakePlacementReport(*program)),
      "main: 3 nodes in 5 steps, 1.026 ms a run expected, the least of all placements: "
      "kernels 1.02 ms, transfers 6.26 us, launches 0 us"
      R"(
  partition  delegate  device  nodes  kernels  transfers  reads  makes
          0  fast      host        2    20 us    3.13 us  512 B  512 B
          1  slow      host        1     1 ms    3.13 us  512 B  512 B
  transfer  value        from           to             bytes     time
  convert   x            plain          channels-last  512 B  3.13 us
  convert   second <&>�  channels-last  plain          512 B  3.13 us
  node  name         op    delegate  algorithm  arithmetic  layout          time
     0  first        Relu  fast      fixed      rounded     channels-last  10 us  estimated
         not slow: fixed, plain: 1 ms
     1  second <&>�  Relu  fast      fixed      rounded     channels-last  10 us  estimated
         not slow: fixed, plain: 1 ms
     2  last         Exp   slow      fixed                  plain           1 ms  estimated
)");
}

// The fast delegate does not support about every third node.
void AlternateOps(std::vector<std::string>* ops, std::vector<std::string>* names) {
  for (int i = 0; i < 40; ++i) {
    ops->push_back(i % 7 == 3 || i % 5 == 1 ? "Exp" : "Relu");
    names->push_back(StrCat("n", i));
  }
}

TEST_F(PlacementReportTest, PartsAddUpToTotal) {
  std::vector<std::string> ops, names;
  AlternateOps(&ops, &names);
  const auto program = Place(ops, names);
  const PlacementReport report = MakePlacementReport(*program);
  EXPECT_NEAR(report.kernel_seconds + report.transfer_seconds + report.launch_seconds,
              program->seconds, 1e-12);
  EXPECT_GT(report.partitions.size(), 5u);
  EXPECT_GT(report.transfer_seconds, 0);
  size_t nodes = 0;
  for (size_t i = 0; i < report.partitions.size(); ++i) {
    nodes += report.partitions[i].nodes.size();
    EXPECT_EQ(report.partitions[i].bytes_in, 512);
    EXPECT_EQ(report.partitions[i].bytes_out, 512);
    EXPECT_TRUE(i == 0 || report.partitions[i].delegate != report.partitions[i - 1].delegate);
  }
  EXPECT_EQ(nodes, ops.size());
}

std::string Picture(const Program& program) {
  const TitledProgram programs[] = {{&program, "main: "}};
  return PlacementSvg(programs);
}

TEST_F(PlacementReportTest, DevicesAddLaunchesAndCopies) {
  std::vector<std::string> ops, names;
  AlternateOps(&ops, &names);
  fast.has_device = true;
  fast.launch_seconds = 1e-5;
  const auto program = Place(ops, names);
  const PlacementReport report = MakePlacementReport(*program);
  EXPECT_GT(report.launch_seconds, 0);
  EXPECT_NEAR(report.kernel_seconds + report.transfer_seconds + report.launch_seconds,
              program->seconds, 1e-12);
  EXPECT_NE(PlacementText(report).find("copy_to_device"), std::string::npos);
  EXPECT_NE(Picture(*program).find("512 B host to fast"), std::string::npos);
}

constexpr std::string_view kBox = "<g class=\"box\">";

size_t Count(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(PlacementReportTest, PictureHasBoxForEachNode) {
  const auto program =
      Place({"Relu", "Exp", "Relu"}, {"a", "</svg><script>alert(1)</script>&\xFF\x01\"", "c"});
  const std::string svg = Picture(*program);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(Count(svg, "<svg"), 1u);
  EXPECT_EQ(Count(svg, "</svg>"), 1u);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
  EXPECT_EQ(svg.find('\xFF'), std::string::npos);
  EXPECT_EQ(Count(svg, kBox), 5u);  // three nodes, inputs, outputs
  EXPECT_NE(svg.find("512 B plain to channels-last"), std::string::npos);
  EXPECT_LT(svg.rfind(kBox), svg.find("512 B plain to channels-last")) << "a label under a box";
  EXPECT_NE(svg.find(">x f32[1, 8, 4, 4]<"), std::string::npos);
  EXPECT_NE(svg.find("marker-end"), std::string::npos);
}

TEST_F(PlacementReportTest, LongNamesInPicturesKeepTheirEnds) {
  const std::string prefix(80, 'p');
  const auto program = Place({"Relu"}, {prefix + "/layer4/relu"});
  EXPECT_NE(Picture(*program).find("/layer4/relu (Relu)</text>"), std::string::npos);
}

TEST_F(PlacementReportTest, ColoursFollowDelegates) {
  const auto program = Place({"Relu", "Exp"}, {"a", "b"});
  const std::string both = Picture(*program);
  const auto fill = [](const std::string& svg, const std::string& delegate) {
    const size_t legend = svg.find(">" + delegate + ": ");
    const size_t at = svg.rfind("fill=\"#", legend);
    return svg.substr(at, 15);
  };
  graph = {};
  fast.offers.clear();
  slow.offers.clear();
  const auto alone = Place({"Exp"}, {"a"});
  EXPECT_EQ(fill(both, "slow"), fill(Picture(*alone), "slow"));
}

// Nodes alternate between the delegates.
TEST_F(PlacementReportTest, PicturesOfLargeMixedGraphsStaySmall) {
  std::vector<std::string> ops, names;
  for (int i = 0; i < 3000; ++i) {
    ops.push_back(i % 2 == 0 ? "Relu" : "Exp");
    names.push_back(StrCat("n", i));
  }
  const std::string svg = Picture(*Place(ops, names));
  EXPECT_LE(Count(svg, kBox), 102u);
  EXPECT_LE(Count(svg, "<path"), 500u);
}

TEST_F(PlacementReportTest, PicturesOfLargeGraphsStaySmall) {
  std::vector<std::string> ops(5000, "Relu"), names;
  for (int i = 0; i < 5000; ++i) names.push_back(StrCat("n", i));
  ops[2500] = "Exp";
  const auto program = Place(ops, names);
  const std::string svg = Picture(*program);
  EXPECT_EQ(Count(svg, kBox), 5u);  // two runs of the fast delegate, one node between them
  EXPECT_NE(svg.find("2500 nodes: Relu 2500"), std::string::npos);
}

TEST_F(PlacementReportTest, GraphWithoutNodesHasReport) {
  const auto program = Place({}, {});
  const PlacementReport report = MakePlacementReport(*program);
  EXPECT_TRUE(report.partitions.empty());
  EXPECT_NE(PlacementText(report).find("0 nodes"), std::string::npos);
  EXPECT_EQ(Count(Picture(*program), kBox), 2u);
}

}  // namespace
}  // namespace msrt
