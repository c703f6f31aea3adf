// Compares the solver with brute force, under budgets that lead it down each of its paths.
#include "core/solve/choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace msrt {
namespace {

using Random = std::mt19937_64;
int Below(Random& random, int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); }
double Uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// How random problems are made.
struct Recipe {
  int nodes;
  int max_choices;
  double forbidden = 0;  // the share of infinite costs
  bool integers = false;
  int caps = 0;
};

double RandomCost(Random& random, const Recipe& recipe) {
  if (Uniform(random) < recipe.forbidden) return kForbidden;
  if (recipe.integers) return Below(random, 7) - 2;
  return (Uniform(random) - 0.3) * 1e-3;
}

std::vector<double> RandomCosts(Random& random, const Recipe& recipe, size_t count) {
  std::vector<double> costs(count);
  for (double& cost : costs) cost = RandomCost(random, recipe);
  return costs;
}

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

Pairs Tree(Random& random, int nodes) {
  Pairs edges;
  for (int v = 1; v < nodes; ++v) edges.push_back({Below(random, v), v});
  return edges;
}

// Grown by replacing an edge by two in a row or by doubling it with a path.
Pairs SeriesParallel(Random& random, int nodes) {
  Pairs edges;
  if (nodes > 1) edges.push_back({0, 1});
  for (int v = 2; v < nodes; ++v) {
    const size_t at = static_cast<size_t>(Below(random, static_cast<int>(edges.size())));
    const auto [a, b] = edges[at];
    if (Below(random, 2)) edges.erase(edges.begin() + static_cast<ptrdiff_t>(at));
    edges.push_back({v, a});
    edges.push_back({b, v});
  }
  return edges;
}

Pairs Dense(Random& random, int nodes) {
  Pairs edges;
  for (int a = 0; a < nodes; ++a) {
    for (int b = 0; b < nodes; ++b) {
      if (a != b && Below(random, 100) < 45) edges.push_back({a, b});
    }
  }
  return edges;
}

ChoiceProblem RandomProblem(Random& random, const Recipe& recipe, const Pairs& edges) {
  ChoiceProblem problem;
  std::vector<size_t> counts;
  for (int v = 0; v < recipe.nodes; ++v) {
    counts.push_back(
        static_cast<size_t>(Below(random, 8) == 0 ? 1 : 2 + Below(random, recipe.max_choices - 1)));
    problem.AddNode(RandomCosts(random, recipe, counts.back()));
  }
  for (const auto& [a, b] : edges)
    problem.AddEdge(a, b, RandomCosts(random, recipe, counts[a] * counts[b]));
  for (int c = 0; c < recipe.caps; ++c) {
    std::vector<std::pair<uint32_t, std::vector<double>>> uses;
    double min_use = 0, max_use = 0;
    for (uint32_t v = 0; v < counts.size(); ++v) {
      if (Below(random, 5) == 0) continue;
      std::vector<double> use(counts[v]);
      for (double& u : use) u = recipe.integers ? Below(random, 6) : Uniform(random) * 1e9;
      min_use += *std::min_element(use.begin(), use.end());
      max_use += *std::max_element(use.begin(), use.end());
      uses.push_back({v, use});
    }
    // Few limits are impossible, most have an effect.
    const double limit = min_use + (max_use - min_use) * (0.6 * Uniform(random) - 0.05);
    problem.AddCap(recipe.integers ? std::floor(limit) : limit, uses);
  }
  return problem;
}

bool KeepsCaps(const ChoiceProblem& problem, std::span<const uint32_t> choices) {
  for (const ChoiceCap& cap : problem.caps()) {
    double sum = 0;
    for (const auto& [node, use] : cap.uses) sum += use[choices[node]];
    if (sum > cap.limit) return false;
  }
  return true;
}

// The least cost over every combination of choices; kForbidden if none is allowed.
double BruteForce(const ChoiceProblem& problem) {
  const ChoiceGraph& graph = problem.graph();
  std::vector<uint32_t> choices(graph.node_count(), 0);
  double least = kForbidden;
  for (;;) {
    const double cost = CostOf(graph, choices);
    if (cost < least && KeepsCaps(problem, choices)) least = cost;
    uint32_t v = 0;
    while (v < choices.size() && ++choices[v] == graph.choice_count(v)) choices[v++] = 0;
    if (v == choices.size()) return least;
  }
}

// Checks every statement that a solution makes about itself, and its cost against the least cost.
void Check(const ChoiceProblem& problem, const ChoiceSolution& solution, double least,
           double rounding, bool must_be_proven, const std::string& what) {
  EXPECT_LE(solution.lower_bound, least + rounding) << what;
  if (must_be_proven) {
    EXPECT_EQ(solution.feasible, least != kForbidden) << what;
    EXPECT_EQ(solution.optimal, solution.feasible) << what;
    if (!solution.feasible) {
      EXPECT_EQ(solution.lower_bound, kForbidden) << what;
    }
  }
  if (!solution.feasible) {
    EXPECT_TRUE(solution.choices.empty()) << what;
    EXPECT_FALSE(solution.optimal) << what;
    return;
  }
  ASSERT_EQ(solution.choices.size(), problem.graph().node_count()) << what;
  EXPECT_EQ(solution.cost, CostOf(problem.graph(), solution.choices)) << what;
  EXPECT_TRUE(KeepsCaps(problem, solution.choices)) << what;
  EXPECT_LE(solution.lower_bound, solution.cost) << what;
  EXPECT_GE(solution.cost, least - rounding) << what;
  if (solution.optimal) {
    EXPECT_NEAR(solution.cost, least, rounding) << what;
  }
}

double RoundingOf(const ChoiceProblem& problem) { return 1e-9 * MagnitudeOf(problem.graph()); }

void Add(const SolveCounts& counts, SolveCounts* sum) {
  sum->single_choice += counts.single_choice, sum->degree_zero += counts.degree_zero;
  sum->degree_one += counts.degree_one, sum->degree_two += counts.degree_two;
  sum->impossible_choices += counts.impossible_choices,
      sum->dead_end_choices += counts.dead_end_choices;
  sum->separable_edges += counts.separable_edges, sum->eliminated += counts.eliminated;
  sum->table_cells += counts.table_cells, sum->conditioned += counts.conditioned;
  sum->bounded += counts.bounded, sum->cells += counts.cells, sum->priced += counts.priced,
      sum->split += counts.split;
}

struct Tally {
  SolveCounts counts;
  int problems = 0, infeasible = 0, unproven = 0;
};

// Adds a node with edges to all others and with one very expensive choice.
void AddExpensiveNode(Random& random, const Recipe& recipe, double expensive,
                      ChoiceProblem* problem) {
  std::vector<double> costs = RandomCosts(random, recipe, 3);
  costs[1] = expensive;
  const uint32_t node = problem->AddNode(costs);
  for (uint32_t v = 0; v < node; ++v) {
    costs = RandomCosts(random, recipe, 3 * problem->graph().choice_count(v));
    for (size_t i = costs.size() / 3; i < costs.size() * 2 / 3; ++i) costs[i] += expensive;
    problem->AddEdge(node, v, costs);
  }
}

// Solves `problems` random problems of all shapes and kinds of costs with these options.
Tally CompareWithBruteForce(uint64_t seed, int problems, int caps, const SolveOptions& options,
                            bool must_be_proven, double expensive = 0) {
  Tally tally;
  Random random(seed);
  for (int i = 0; i < problems; ++i) {
    Recipe recipe{.nodes = 1 + Below(random, 8), .max_choices = 4};
    recipe.forbidden = i % 3 == 0 ? 0 : Uniform(random) * 0.4;
    recipe.integers = i % 2 == 0;
    recipe.caps = caps;
    const int shape = Below(random, 4);
    const Pairs edges = shape == 0   ? Tree(random, recipe.nodes)
                        : shape == 1 ? SeriesParallel(random, recipe.nodes)
                                     : Dense(random, recipe.nodes);
    ChoiceProblem problem = RandomProblem(random, recipe, edges);
    double rounding = RoundingOf(problem);
    if (expensive > 0) AddExpensiveNode(random, recipe, expensive, &problem);
    const double least = BruteForce(problem);
    if (least > expensive && least != kForbidden) rounding = RoundingOf(problem);
    const ChoiceSolution solution = Solve(problem, options);
    Check(problem, solution, least, rounding, must_be_proven,
          "problem " + std::to_string(i) + " of seed " + std::to_string(seed));
    if (::testing::Test::HasFailure()) return tally;
    Add(solution.counts, &tally.counts);
    ++tally.problems;
    tally.infeasible += least == kForbidden;
    tally.unproven += !solution.optimal && solution.lower_bound != kForbidden;
  }
  return tally;
}

TEST(Solve, EqualsBruteForce) {
  const Tally tally = CompareWithBruteForce(1, 2000, 0, {}, true);
  EXPECT_GT(tally.infeasible, 50);
  EXPECT_GT(tally.counts.single_choice, 0);
  EXPECT_GT(tally.counts.degree_zero, 0);
  EXPECT_GT(tally.counts.degree_one, 0);
  EXPECT_GT(tally.counts.degree_two, 0);
  EXPECT_GT(tally.counts.impossible_choices, 0);
  EXPECT_GT(tally.counts.dead_end_choices, 0);
  EXPECT_GT(tally.counts.separable_edges, 0);
  EXPECT_GT(tally.counts.eliminated, 100);
}

TEST(Solve, EqualsBruteForceByConditioning) {
  const Tally tally = CompareWithBruteForce(2, 1500, 0, {.max_table_cells = 0}, true);
  EXPECT_EQ(tally.counts.eliminated, 0);
  EXPECT_GT(tally.counts.conditioned, 100);
  EXPECT_GT(tally.counts.bounded, 100);
}

TEST(Solve, EqualsBruteForceUnderOneCap) {
  const Tally tally = CompareWithBruteForce(3, 1000, 1, {}, true);
  EXPECT_GT(tally.infeasible, 50);
  EXPECT_GT(tally.counts.priced, 1000);
  EXPECT_GT(tally.counts.split, 100);
}

TEST(Solve, EqualsBruteForceUnderTwoCaps) {
  const Tally tally = CompareWithBruteForce(4, 1000, 2, {}, true);
  EXPECT_GT(tally.infeasible, 50);
  EXPECT_GT(tally.counts.split, 100);
}

TEST(Solve, EqualsBruteForceUnderCapsByConditioning) {
  const Tally tally =
      CompareWithBruteForce(5, 500, 2, {.max_table_cells = 0, .max_branches = 100000}, true);
  EXPECT_GT(tally.counts.conditioned, 100);
}

// Rounding is relative to the cost of the chosen, not of all possible choices.
TEST(Solve, ExpensiveChoiceDoesNotHideTheOthers) {
  const double expensive = 9e11;
  CompareWithBruteForce(13, 300, 0, {}, true, expensive);
  EXPECT_GT(
      CompareWithBruteForce(14, 300, 0, {.max_table_cells = 0}, true, expensive).counts.conditioned,
      30);
  EXPECT_GT(CompareWithBruteForce(15, 300, 1, {}, true, expensive).counts.split, 100);
  EXPECT_GT(CompareWithBruteForce(16, 300, 2, {.max_table_cells = 0, .max_branches = 100000}, true,
                                  expensive)
                .counts.split,
            100);
}

TEST(Solve, BoundsHoldWithoutBudget) {
  const Tally tally =
      CompareWithBruteForce(6, 1000, 0, {.max_table_cells = 0, .max_branches = 0}, false);
  EXPECT_GT(tally.unproven, 20);
  EXPECT_GT(tally.counts.bounded, 50);
  EXPECT_EQ(tally.counts.conditioned + tally.counts.eliminated, 0);
}

TEST(Solve, BoundsHoldWithTooSmallBudget) {
  EXPECT_GT(
      CompareWithBruteForce(7, 600, 1, {.max_table_cells = 20, .max_branches = 3}, false).unproven,
      20);
  EXPECT_GT(
      CompareWithBruteForce(8, 600, 2, {.max_table_cells = 20, .max_branches = 5}, false).unproven,
      20);
}

// A search that ends in the middle of a split leaves some leaves unexamined. Solves small problems
// under every budget up to the one that suffices.
TEST(Solve, BoundsHoldWhereverTheSearchEnds) {
  Random random(3);
  int unproven = 0;
  for (int i = 0; i < 3000; ++i) {
    const Recipe recipe{.nodes = 2 + Below(random, 4),
                        .max_choices = 3,
                        .integers = i % 2 == 0,
                        .caps = 1 + Below(random, 3)};
    const Pairs edges = Below(random, 2) == 0 ? Pairs() : Tree(random, recipe.nodes);
    const ChoiceProblem problem = RandomProblem(random, recipe, edges);
    const double least = BruteForce(problem);
    for (int64_t branches = 0; branches <= 70; ++branches) {
      const ChoiceSolution solution = Solve(problem, {.max_branches = branches});
      const std::string what =
          "problem " + std::to_string(i) + " with " + std::to_string(branches) + " branches";
      Check(problem, solution, least, RoundingOf(problem), false, what);
      if (HasFailure()) return;
      unproven += !solution.optimal && solution.lower_bound != kForbidden;
      if (solution.counts.priced < branches) break;  // solved; a larger budget changes nothing
    }
  }
  EXPECT_GT(unproven, 1000);
}

TEST(Solve, IsNoWorseThanItsStart) {
  Random random(17);
  int allowed = 0, kept = 0;
  for (int i = 0; i < 900; ++i) {
    const Recipe recipe{.nodes = 2 + Below(random, 7),
                        .max_choices = 4,
                        .forbidden = 0.1,
                        .integers = i % 2 == 0,
                        .caps = i % 3};
    const ChoiceProblem problem = RandomProblem(random, recipe, Dense(random, recipe.nodes));
    const double least = BruteForce(problem);
    std::vector<uint32_t> start;
    for (int t = 0; t < 50; ++t) {  // most are forbidden
      start.clear();
      for (uint32_t v = 0; v < problem.graph().node_count(); ++v) {
        start.push_back(static_cast<uint32_t>(
            Below(random, static_cast<int>(problem.graph().choice_count(v)))));
      }
      if (CostOf(problem.graph(), start) != kForbidden && KeepsCaps(problem, start)) break;
    }
    const double cost = KeepsCaps(problem, start) ? CostOf(problem.graph(), start) : kForbidden;
    const std::string what = "problem " + std::to_string(i);
    const ChoiceSolution hurried = Solve(problem, {.max_table_cells = 0, .max_branches = 0}, start);
    Check(problem, hurried, least, RoundingOf(problem), false, what);
    EXPECT_LE(hurried.cost, cost) << what;
    allowed += cost != kForbidden;
    kept += hurried.choices == start;
    Check(problem, Solve(problem, {}, std::span(start).first(start.size() / 2)), least,
          RoundingOf(problem), true, what);
  }
  EXPECT_GT(allowed, 300);
  EXPECT_GT(kept, 20);
}

// For problems too large for brute force, two methods that share only the reductions must agree.
TEST(Solve, EliminationAndConditioningAgree) {
  Random random(9);
  SolveCounts eliminating, conditioning;
  for (int i = 0; i < 40; ++i) {
    const Recipe recipe{
        .nodes = 13, .max_choices = 5, .forbidden = i % 2 ? 0.1 : 0, .integers = i % 4 < 2};
    const ChoiceProblem problem = RandomProblem(random, recipe, Dense(random, recipe.nodes));
    const ChoiceSolution by_tables = Solve(problem);
    const ChoiceSolution by_search = Solve(
        problem,
        {.max_table_cells = 0, .max_branches = 1 << 20, .max_search_cells = int64_t{1} << 40});
    Check(problem, by_search, by_tables.cost, RoundingOf(problem), true,
          "problem " + std::to_string(i));
    EXPECT_EQ(by_tables.optimal, by_tables.feasible);
    Add(by_tables.counts, &eliminating);
    Add(by_search.counts, &conditioning);
  }
  EXPECT_GT(eliminating.eliminated, 100);
  EXPECT_EQ(eliminating.conditioned, 0);
  EXPECT_GT(conditioning.conditioned, 100);
}

TEST(Solve, StopsWhenTheBudgetIsSpent) {
  Random random(10);
  const Recipe recipe{.nodes = 60, .max_choices = 8};
  const ChoiceProblem problem = RandomProblem(random, recipe, Dense(random, recipe.nodes));
  const ChoiceSolution first =
      Solve(problem, {.max_table_cells = 0, .max_branches = 1, .max_search_cells = 0});
  EXPECT_EQ(first.counts.conditioned, 0);
  const SolveOptions options{
      .max_table_cells = 1 << 16, .max_branches = 1 << 20, .max_search_cells = 1 << 23};
  const ChoiceSolution solution = Solve(problem, options);
  EXPECT_TRUE(solution.feasible);
  EXPECT_FALSE(solution.optimal);
  EXPECT_LE(solution.lower_bound, solution.cost);
  EXPECT_GE(solution.lower_bound, first.lower_bound);
  EXPECT_LE(solution.counts.table_cells, int64_t{1} << 16);
  // A subproblem that was started is finished.
  EXPECT_LE(solution.counts.cells, options.max_search_cells + 2 * first.counts.cells);
}

TEST(Solve, IsDeterministic) {
  Random random(11);
  const Recipe recipe{.nodes = 30, .max_choices = 6, .caps = 2};
  const ChoiceProblem problem = RandomProblem(random, recipe, SeriesParallel(random, recipe.nodes));
  const ChoiceSolution first = Solve(problem), second = Solve(problem);
  EXPECT_TRUE(first.feasible);
  EXPECT_EQ(first.choices, second.choices);
  EXPECT_EQ(first.lower_bound, second.lower_bound);
  EXPECT_EQ(first.counts.cells, second.counts.cells);
}

TEST(Solve, EmptyProblemCostsNothing) {
  const ChoiceSolution solution = Solve(ChoiceProblem());
  EXPECT_TRUE(solution.feasible && solution.optimal);
  EXPECT_EQ(solution.cost, 0);
}

TEST(Solve, InvalidCostForbidsTheChoice) {
  ChoiceProblem problem;
  const double nan = std::nan("");
  const uint32_t a = problem.AddNode(std::vector<double>{nan, -kForbidden, 5, 1e300});
  const uint32_t b = problem.AddNode(std::vector<double>{1, 2});
  problem.AddEdge(a, b, std::vector<double>{0, 0, 0, 0, nan, 0, 0, 0});
  const ChoiceSolution solution = Solve(problem);
  EXPECT_EQ(solution.choices, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(solution.cost, 7);
  problem.AddCap(nan, {});
  EXPECT_FALSE(Solve(problem).feasible);
  EXPECT_EQ(Solve(problem).lower_bound, kForbidden);
}

TEST(Solve, ExtremeCapsAreKept) {
  const auto with_cap = [](double limit, std::vector<double> use) {
    ChoiceProblem problem;
    const uint32_t node = problem.AddNode(std::vector<double>{1, 2, 3});
    problem.AddCap(limit, {{node, std::move(use)}});
    return Solve(problem);
  };
  EXPECT_EQ(with_cap(0, {1, 1e-300, 0}).choices, std::vector<uint32_t>{2});
  EXPECT_EQ(with_cap(kForbidden, {1, 1, 1}).choices, std::vector<uint32_t>{0});
  EXPECT_EQ(with_cap(5, {-1, std::nan(""), 5}).choices, std::vector<uint32_t>{2});
  EXPECT_EQ(with_cap(1e-310, {1, 1e-310, 0}).choices, std::vector<uint32_t>{1});
  EXPECT_FALSE(with_cap(-1, {0, 0, 0}).feasible);
  EXPECT_FALSE(with_cap(1, {2, 2, 2}).feasible);
}

TEST(Solve, TiesGoToTheLowerIndex) {
  ChoiceProblem problem;
  for (int v = 0; v < 5; ++v) problem.AddNode(std::vector<double>(4, 1.0));
  for (uint32_t v = 1; v < 5; ++v) problem.AddEdge(v - 1, v, std::vector<double>(16, 2.0));
  EXPECT_EQ(Solve(problem).choices, std::vector<uint32_t>(5, 0));
}

}  // namespace
}  // namespace msrt
