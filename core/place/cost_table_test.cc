#include "core/place/cost_table.h"

#include <gtest/gtest.h>

#include "core/delegate/fake_delegate.h"
#include "core/place/place.h"
#include "delegates/builtin.h"
#include "ops/builder.h"

namespace msrt {
namespace {

using testing::FakeDelegate;
using testing::MakeFake;

const std::string kHead =
    "msrt costs 1\nlibrary 1.2\nprocessor Some CPU @ 3 GHz\nthreads 2\nflops_per_second "
    "1e+11\nbytes_per_second 2e+10\n";

CostTable Sample() {
  CostTable table;
  table.origin = {"1.2", "Some CPU @ 3 GHz", 2, {1e11, 2e10}};
  table.Set("onednn jit | Conv", 1.25e-5);
  table.Set("reference loops | Conv", 0.1);
  return table;
}

TEST(CostTable, ParsesItsOwnOutput) {
  const CostTable table = Sample();
  EXPECT_EQ(table.Print(), kHead + "1.25e-05 onednn jit | Conv\n0.1 reference loops | Conv\n");
  const auto read = CostTable::Parse(table.Print());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->Print(), table.Print());
  EXPECT_EQ(*read->Find("onednn jit | Conv"), 1.25e-5);
  EXPECT_EQ(read->Find("onednn jit"), nullptr);
  EXPECT_EQ(Difference(read->origin, table.origin), "");
}

TEST(CostTable, DescribesDifferenceOfOrigins) {
  CostOrigin here = Sample().origin;
  here.threads = 8;
  here.processor = "Another";
  EXPECT_EQ(Difference(Sample().origin, here),
            "processor Some CPU @ 3 GHz and not Another, threads 2 and not 8");
}

TEST(CostTable, RejectsOtherTextAndNamesLine) {
  const std::string long_key(10000, 'k');
  const std::pair<std::string, const char*> cases[] = {
      {"", "line 1"},
      {"msrt costs 2\n", "line 1"},
      {"msrt costs 1", "line 1"},
      {"msrt costs 1\n", "is missing"},
      {kHead + "nonsense\n", "line 7"},
      {kHead + "colour blue\n", "'colour' is no word"},
      {kHead + "1e-5 \n", "line 7"},
      {kHead + "\n", "line 7"},
      {kHead + "1e-5 key", "cut off"},
      {kHead + "0 key\n", "must be a number"},
      {kHead + "-1 key\n", "line 7"},
      {kHead + "1e400 key\n", "must be a number"},
      {kHead + "1e7 key\n", "must be a number"},
      {kHead + "1.5x key\n", "must be a number"},
      {kHead + "nan key\n", "line 7"},
      {kHead + "1e-5 a\n1e-5 a\n", "line 8: the same key"},
      {kHead + "1e-5 a\tb\n", "printable"},
      {kHead + "1e-5 \xFF\n", "printable"},
      {kHead + std::string("1e-5 a\0b\n", 9), "printable"},
      {kHead + "1e-5 " + long_key + "\n", "10000 bytes"},
      {"msrt costs 1\nthreads 0\n", "line 2"},
      {"msrt costs 1\nthreads 1e300\n", "line 2"},
      {"msrt costs 1\nflops_per_second inf\n", "line 2"},
  };
  for (const auto& [text, expected] : cases) {
    const auto table = CostTable::Parse(text);
    ASSERT_FALSE(table.ok()) << text.substr(0, 200);
    EXPECT_NE(table.status().message().find(expected), std::string::npos)
        << table.status().message();
  }
}

TEST(CostTable, TruncatedFileIsRejectedOrShorter) {
  const std::string text = Sample().Print();
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    const auto table = CostTable::Parse(text.substr(0, bytes));
    EXPECT_TRUE(!table.ok() || table->size() < 2) << bytes;
  }
}

// A graph of a few nodes, and the cost keys of their candidates.
class Costs : public ::testing::Test {
 protected:
  Graph graph;
  std::unique_ptr<OfferedGraph> offered;

  void SetUp() override {
    GraphBuilder builder(&graph);
    const ValueId x = graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 4, 4})),
                  y = graph.AddInput("y", Type::Tensor(DType::kF32, {1, 8, 4, 5}));
    Add(&builder, "LeakyRelu", "first", x, {});
    Add(&builder, "LeakyRelu", "again", x, {});
    AttrList steeper;
    steeper.Set("alpha", 0.25);
    Add(&builder, "LeakyRelu", "steeper", x, steeper);
    Add(&builder, "LeakyRelu", "wider", y, {});
    auto made = OfferedGraph::Make(graph, BuiltinEvaluator(), {});
    ASSERT_TRUE(made.ok());
    offered = *std::move(made);
  }
  void Add(GraphBuilder* builder, const char* op, const char* name, ValueId input, AttrList attrs) {
    auto out = builder->Add(op, name, {input}, std::move(attrs));
    ASSERT_TRUE(out.ok()) << out.status().message();
    graph.outputs.push_back(*out);
  }
  static Candidate Offer(uint32_t node, Layout layout, double seconds) {
    Candidate c;
    c.nodes = {node};
    c.input_layouts = c.output_layouts = {layout};
    c.seconds = seconds;
    c.algorithm = "way";
    return c;
  }
  std::string Key(uint32_t node, Layout layout = Layout::kPlain, const char* delegate = "a") const {
    return CostKey(*offered, delegate, Offer(node, layout, 1));
  }
};

TEST_F(Costs, EqualCostsHaveEqualKeys) {
  EXPECT_EQ(Key(0), StrCat("a way | LeakyRelu/", graph.nodes[0].version,
                           " ( #0:f32[1,8,4,4] ) -> #1:f32[1,8,4,4]"));
  EXPECT_EQ(Key(0), Key(1));
  EXPECT_NE(Key(0), Key(2));
  EXPECT_NE(Key(0), Key(3));
  EXPECT_NE(Key(0), Key(0, Layout::kBlocked8));
  EXPECT_NE(Key(0), Key(0, Layout::kPlain, "b"));
}

TEST_F(Costs, PlacementPrefersMeasuredCostsToEstimates) {
  FakeDelegate a{.name = "a", .offers = {}}, b{.name = "b", .offers = {}};
  for (uint32_t n = 0; n < 4; ++n) {
    a.offers.push_back(Offer(n, Layout::kPlain, 1e-6));
    b.offers.push_back(Offer(n, Layout::kPlain, 1e-3));
  }
  const std::shared_ptr<const Delegate> delegates[] = {MakeFake(a), MakeFake(b)};
  const Host host(DefaultAllocator(), MakeSerial(), Log());
  const auto placement = [&](const PlaceOptions& options) {
    Placer placer(*offered, host, delegates, options);
    EXPECT_TRUE(placer.Query().ok());
    auto result = placer.Place();
    EXPECT_TRUE(result.ok());
    return *std::move(result);
  };
  for (const NodeExplanation& e : placement({}).explanations) EXPECT_EQ(e.delegate, "a");

  auto table = std::make_shared<CostTable>();
  table->Set(Key(0, Layout::kPlain, "a"), 0.5);  // the first two nodes
  table->Set(Key(0, Layout::kPlain, "b"), 2e-6);
  PlaceOptions options;
  options.costs = table;
  const Placement measured = placement(options);
  EXPECT_EQ(measured.explanations[0].delegate, "b");
  EXPECT_EQ(measured.explanations[1].delegate, "b");
  EXPECT_TRUE(measured.explanations[1].measured);
  EXPECT_EQ(measured.explanations[1].seconds, 2e-6);
  EXPECT_EQ(measured.explanations[2].delegate, "a");
  EXPECT_FALSE(measured.explanations[2].measured);
}

}  // namespace
}  // namespace msrt
