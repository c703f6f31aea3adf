#include "core/place/choose_arithmetic.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/parallel_for.h"
#include "core/delegate/fake_delegate.h"
#include "core/place/place.h"
#include "delegates/builtin.h"
#include "ops/builder.h"

namespace msrt::testing {
namespace {

using Names = std::vector<std::string>;

struct Claim {
  std::vector<uint32_t> nodes;
  std::string arithmetic;
  uint32_t delegate = 0;
};

Names Choose(size_t node_count, const std::vector<Claim>& claims,
             const std::vector<uint32_t>& on_host = {}) {
  std::vector<Candidate> candidates(claims.size());
  std::vector<NamedCandidate> named;
  for (size_t i = 0; i < claims.size(); ++i) {
    candidates[i].nodes = claims[i].nodes;
    candidates[i].arithmetic = claims[i].arithmetic;
    named.push_back({&candidates[i], claims[i].delegate});
  }
  std::vector<bool> host(node_count);
  for (uint32_t n : on_host) host[n] = true;
  const std::vector<std::string_view> names = ChooseArithmetic(host, named);
  return Names(names.begin(), names.end());
}

TEST(ChooseArithmetic, PrefersNamesInOneOrder) {
  const std::vector<Claim> all = {{{0}, "reference", 0}, {{0}, "b", 2},   {{0}, "a", 2},
                                  {{0}, "z", 1},         {{0}, "fma", 3}, {{0}, "winograd4", 3},
                                  {{0}, "rounded", 4}};
  EXPECT_EQ(Choose(1, all), Names{"rounded"});
  EXPECT_EQ(Choose(1, {all.begin(), all.begin() + 6}), Names{"winograd4"});
  EXPECT_EQ(Choose(1, {all.begin(), all.begin() + 5}), Names{"fma"});
  EXPECT_EQ(Choose(1, {all.begin(), all.begin() + 4}), Names{"z"});
  EXPECT_EQ(Choose(1, {all.begin(), all.begin() + 3}), Names{"a"});
  EXPECT_EQ(Choose(1, {all.begin(), all.begin() + 1}), Names{"reference"});
  EXPECT_EQ(Choose(1, {}), Names{""});
}

TEST(ChooseArithmetic, CandidatesOfOneNodeDecide) {
  EXPECT_EQ(Choose(2, {{{0}, "reference"}, {{1}, "b"}, {{0, 1}, "rounded"}}),
            (Names{"reference", "b"}));
}

TEST(ChooseArithmetic, GroupsDecideForNodesThatNeedThem) {
  // Node 1 runs only with 0 or with 2; the preferred group sets all of its nodes.
  EXPECT_EQ(Choose(3, {{{0}, "rounded"}, {{2}, "rounded"}, {{0, 1}, "b"}, {{1, 2}, "a"}}),
            (Names{"rounded", "a", "a"}));
  // A name that a group has set stays.
  EXPECT_EQ(Choose(3, {{{0, 1}, "a"}, {{1, 2}, "b"}}), (Names{"a", "a", ""}));
  EXPECT_EQ(Choose(3, {{{0, 1}, "a"}, {{1, 2}, "a"}}), (Names{"a", "a", "a"}));
  // The host runs node 1 by itself.
  EXPECT_EQ(Choose(2, {{{0}, "rounded"}, {{0, 1}, "a"}}, {1}), (Names{"rounded", ""}));
}

TEST(ChooseArithmetic, OrderOfOffersDoesNotMatter) {
  std::vector<Claim> claims = {{{0}, "b", 1},    {{0}, "a", 1},         {{1}, "c", 2},
                               {{1, 2}, "d", 1}, {{2, 3}, "e", 1},      {{0, 3}, "f", 3},
                               {{4}, "fma", 9},  {{3, 4}, "rounded", 5}};
  const Names expected = Choose(5, claims);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(claims.begin(), claims.end(), random);
    ASSERT_EQ(Choose(5, claims), expected);
  }
}

// Three delegates whose candidates for a chain of Relus have random names and costs.
class ExactPlacement : public ::testing::Test {
 protected:
  static constexpr uint32_t kNodes = 12;
  ExactPlacement() {
    GraphBuilder builder(&graph);
    ValueId v = graph.AddInput("x", Type::Tensor(DType::kF32, {1, 8, 6, 6}));
    for (uint32_t n = 0; n < kNodes; ++n) v = *builder.Add("Relu", StrCat("n", n), {v});
    graph.outputs = {v};
    auto made = OfferedGraph::Make(graph, BuiltinEvaluator(), {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    offered = *std::move(made);
    std::mt19937 random(11);
    constexpr const char* kNames[] = {"", "rounded", "fma", "a", "b", "reference"};
    for (size_t d = 0; d < 3; ++d) {
      fakes[d].name = StrCat("fake", d);
      for (uint32_t n = 0; n < kNodes; ++n) {
        for (int o = 0; o < 3; ++o) Offer(d, {n}, o == 0 && d == 2 ? "b" : kNames[random() % 6]);
        if (n + 1 < kNodes) Offer(d, {n, n + 1}, kNames[random() % 6]);
      }
    }
  }

  void Offer(size_t d, std::vector<uint32_t> nodes, std::string arithmetic) {
    Candidate c = OfferFor(*offered, std::move(nodes), 1e-6);
    c.arithmetic = std::move(arithmetic);
    c.algorithm = StrCat(fakes[d].offers.size());  // distinguishes cost keys
    fakes[d].offers.push_back(std::move(c));
  }

  Placement Place(const PlaceOptions& options, int threads = 1) {
    delegates.clear();
    for (const FakeDelegate& fake : fakes) delegates.push_back(MakeFake(fake));
    host = std::make_shared<const Host>(DefaultAllocator(), MakeThreadPool(threads), Log());
    placer = std::make_unique<Placer>(*offered, *host, delegates, options);
    const Status queried = placer->Query();
    EXPECT_TRUE(queried.ok()) << queried.message();
    auto placed = placer->Place();
    EXPECT_TRUE(placed.ok()) << placed.status().message();
    return *std::move(placed);
  }
  static Names NamesOf(const Placement& placement) {
    Names names;
    for (const NodeExplanation& why : placement.explanations) names.push_back(why.arithmetic);
    return names;
  }
  static std::vector<std::string> DelegatesOf(const Placement& placement) {
    std::vector<std::string> names;
    for (const NodeExplanation& why : placement.explanations) names.push_back(why.delegate);
    return names;
  }
  void ShuffleCosts(std::mt19937* random) {
    std::uniform_real_distribution<double> seconds(1e-6, 1e-4);
    for (FakeDelegate& fake : fakes) {
      for (Candidate& c : fake.offers) c.seconds = seconds(*random);
    }
  }

  Graph graph;
  std::shared_ptr<const OfferedGraph> offered;
  FakeDelegate fakes[3];
  std::vector<std::shared_ptr<const Delegate>> delegates;  // outlives the placer
  std::shared_ptr<const Host> host;
  std::unique_ptr<Placer> placer;
};

TEST_F(ExactPlacement, CostsAndThreadsDoNotChangeNames) {
  PlaceOptions exact;
  exact.exact = true;
  const Names expected = NamesOf(Place(exact));
  for (const std::string& name : expected) EXPECT_NE(name, "");
  std::mt19937 random(5);
  bool moved = false, default_changed = false;
  const auto before = DelegatesOf(Place(exact));
  for (int round = 0; round < 20; ++round) {
    ShuffleCosts(&random);
    const Placement placement = Place(exact, 1 + round % 4);
    ASSERT_EQ(NamesOf(placement), expected) << "round " << round;
    moved |= DelegatesOf(placement) != before;
    default_changed |= NamesOf(Place({})) != expected;
  }
  EXPECT_TRUE(moved) << "cost still chooses among candidates of one name";
  EXPECT_TRUE(default_changed) << "outside exact mode cost alone chooses";
}

TEST_F(ExactPlacement, MeasuredCostsDoNotChangeNames) {
  PlaceOptions exact;
  exact.exact = true;
  const Names expected = NamesOf(Place(exact));
  std::mt19937 random(6);
  std::uniform_real_distribution<double> seconds(1e-7, 1e-3);
  for (int round = 0; round < 10; ++round) {
    auto costs = std::make_shared<CostTable>();
    for (const FakeDelegate& fake : fakes) {
      for (const Candidate& c : fake.offers)
        costs->Set(CostKey(*offered, fake.name, c), seconds(random));
    }
    exact.costs = std::move(costs);
    const Placement placement = Place(exact);
    EXPECT_TRUE(placement.explanations[0].measured);
    ASSERT_EQ(NamesOf(placement), expected) << "round " << round;
  }
}

TEST_F(ExactPlacement, RuleAppliesToAllowedCandidates) {
  PlaceOptions exact;
  exact.exact = true;
  exact.pins = *ParsePins("node:n3=fake2");
  exact.delegates = {"fake1", "fake2"};
  const Placement placement = Place(exact);
  EXPECT_EQ(placement.explanations[3].delegate, "fake2");
  std::vector<Claim> claims;
  for (uint32_t d = 1; d < 3; ++d) {
    for (const Candidate& c : fakes[d].offers) {
      const bool pinned_away =
          d != 2 && std::find(c.nodes.begin(), c.nodes.end(), 3u) != c.nodes.end();
      if (!c.arithmetic.empty() && !pinned_away) claims.push_back({c.nodes, c.arithmetic, d});
    }
  }
  EXPECT_EQ(NamesOf(placement), Choose(kNodes, claims));
}

TEST_F(ExactPlacement, UnusedCandidatesAreExplained) {
  PlaceOptions exact;
  exact.exact = true;
  const Placement placement = Place(exact);
  bool other_name = false, no_name = false;
  for (const NodeExplanation& why : placement.explanations) {
    for (const auto& [delegate, reason] : why.others) {
      other_name |= reason.find("accuracy 'exact' uses '") != std::string::npos;
      no_name |= reason.find("does not name its arithmetic") != std::string::npos;
    }
  }
  EXPECT_TRUE(other_name);
  EXPECT_TRUE(no_name);
}

TEST_F(ExactPlacement, BannedCandidatesLoseTheirSay) {
  PlaceOptions exact;
  exact.exact = true;
  Place(exact);
  const Placement before = *placer->Place();
  // Bans every candidate with the name of node 0 until the name changes.
  for (int bans = 0; bans < 100; ++bans) {
    const auto placed = placer->Place();
    ASSERT_TRUE(placed.ok()) << placed.status().message();
    if (placed->explanations[0].arithmetic != before.explanations[0].arithmetic) return;
    placer->Ban(placed->steps[0].option, "it failed to compile");
  }
  FAIL() << "the name stays although its candidates failed";
}

}  // namespace
}  // namespace msrt::testing
