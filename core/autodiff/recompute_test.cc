// Plans for chains against brute force, and recomputed graphs against those that keep everything.
#include "core/autodiff/recompute.h"

#include <random>

#include "core/autodiff/autodiff_testing.h"

namespace msrt::testing {
namespace {

// Walks through a step with the set of values that exist: by link, inner and output bytes.
struct Simulation {
  std::span<const ChainLink> links;
  std::vector<double> held;  // by link
  double peak = 0, seconds = 0;

  void Note() {
    double sum = 0;
    for (double h : held) sum += h;
    peak = std::max(peak, sum);
  }
  double All(size_t i) const { return links[i].inner_bytes + links[i].output_bytes; }

  // `segment_of`: by link, the number of its segment, or -1 if it is kept.
  void Run(const std::vector<int>& segment_of) {
    const size_t n = links.size();
    held.assign(n, 0);
    const auto ends_segment = [&](size_t i) {
      return i + 1 == n || segment_of[i + 1] != segment_of[i];
    };
    for (size_t i = 0; i < n; ++i) {
      if (segment_of[i] < 0) held[i] = All(i);
      else if (ends_segment(i)) held[i] = links[i].output_bytes;
    }
    Note();
    for (size_t i = n; i-- > 0;) {
      if (segment_of[i] >= 0 && ends_segment(i)) {
        for (size_t k = i + 1; k-- > 0 && segment_of[k] == segment_of[i];) {
          held[k] = All(k);
          seconds += links[k].seconds;
        }
        Note();
      }
      held[i] = 0;
    }
  }
};

// The least seconds over all ways to keep links and to group the others, infinity if none fits.
double BruteForce(std::span<const ChainLink> links, double budget, double* smallest_peak) {
  const size_t n = links.size();
  double best = std::numeric_limits<double>::infinity();
  *smallest_peak = best;
  std::vector<int> segment_of(n);
  // Digit 0: kept; 1: joins the segment before it, if there is one; 2: begins a segment.
  size_t ways = 1;
  for (size_t i = 0; i < n; ++i) ways *= 3;
  for (size_t way = 0; way < ways; ++way) {
    int segments = 0;
    for (size_t i = 0, rest = way; i < n; ++i, rest /= 3) {
      const bool joins = rest % 3 == 1 && i > 0 && segment_of[i - 1] >= 0;
      segment_of[i] = rest % 3 == 0 ? -1 : joins ? segment_of[i - 1] : segments++;
    }
    Simulation s{links, {}, 0, 0};
    s.Run(segment_of);
    *smallest_peak = std::min(*smallest_peak, s.peak);
    if (s.peak <= budget) best = std::min(best, s.seconds);
  }
  return best;
}

TEST(Recompute, ChainPlansAreOptimal) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> number(0, 9);
  int planned = 0, refused = 0, partial = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<ChainLink> links(1 + random() % 7);
    double all = 0;
    for (ChainLink& link : links) {
      link = {1.0 + number(random), static_cast<double>(number(random)),
              static_cast<double>(number(random))};
      all += link.inner_bytes + link.output_bytes;
    }
    for (double part : {0.3, 0.5, 0.7, 0.9, 1.0}) {
      const double budget = std::floor(part * all);
      double smallest = 0;
      const double best = BruteForce(links, budget, &smallest);
      const auto plan = PlanChain(links, budget);
      if (!plan.ok()) {
        ++refused;
        EXPECT_TRUE(std::isinf(best)) << plan.status().message();
        EXPECT_EQ(plan.status().code(), Code::kLimitExceeded);
        EXPECT_NE(plan.status().message().find(StrCat("at least ", smallest)), std::string::npos)
            << plan.status().message();
        continue;
      }
      ++planned;
      partial += plan->seconds > 0;
      EXPECT_EQ(plan->seconds, best);
      EXPECT_LE(plan->peak_bytes, budget);
      // The plan is what it says.
      std::vector<int> segment_of(links.size(), -1);
      for (size_t s = 0; s < plan->segments.size(); ++s) {
        for (size_t i = plan->segments[s].first; i < plan->segments[s].end; ++i)
          segment_of[i] = static_cast<int>(s);
      }
      Simulation s{links, {}, 0, 0};
      s.Run(segment_of);
      EXPECT_EQ(s.peak, plan->peak_bytes);
      EXPECT_EQ(s.seconds, plan->seconds);
    }
  }
  EXPECT_GT(planned, 100);
  EXPECT_GT(partial, 50);
  EXPECT_GT(refused, 20);
}

// Layers y = z / (1 + z^2) with z = y W, and the gradients of the sum of squares.
struct Network {
  Module module;
  size_t forward_nodes = 0;
  std::vector<ConstTensor> inputs;
};
Network DeepNetwork(int layers) {
  ModuleBuilder m(1);
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 0.3);
  Network net;
  const auto input = [&](Dims dims) {
    Doubles values(static_cast<size_t>(dims.elements()));
    for (double& v : values) v = normal(random);
    net.inputs.push_back(TensorOf(dims, values));
    return m.Input(0, net.inputs.back().type());
  };
  const ValueId one = Constant(&m, 0, 1);
  ValueId y = input({64, 16});
  GradientRequest request;
  for (int i = 0; i < layers; ++i) {
    const ValueId w = input({16, 16});
    request.with_respect_to.push_back(w);
    const ValueId z = m.Op(0, "MatMul", {y, w});
    y = m.Op(0, "Div", {z, m.Op(0, "Add", {m.Op(0, "Mul", {z, z}), one})});
  }
  const ValueId loss = m.Op(0, "ReduceSum", {m.Op(0, "Mul", {y, y})}, {{"keepdims", int64_t{0}}});
  request.of = {loss};
  net.forward_nodes = m.module.main().nodes.size();
  EXPECT_TRUE(Validate(&m.module).ok());
  const auto gradients = AddGradients(&m.module, 0, request);
  EXPECT_TRUE(gradients.ok()) << gradients.status().message();
  m.module.main().outputs = *gradients;
  net.module = std::move(m.module);
  return net;
}

size_t CountOf(const Module& module, std::string_view op) {
  return static_cast<size_t>(
      std::count_if(module.main().nodes.begin(), module.main().nodes.end(),
                    [&](const Node& node) { return node.op.find(op) != std::string::npos; }));
}
// The module after all passes.
Module Compiled(const Module& module) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  auto model = CompileModule(TestEnvironment(), module, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? (*model)->module : module;
}

TEST(Recompute, BlocksAreComputedAgainWithTheSameBits) {
  Network net = DeepNetwork(6);
  const auto want = RunBoth(net.module, net.inputs);
  const size_t products = CountOf(Compiled(net.module), "MatMul");
  // The nodes of layers 1 and 2, and of layer 4, counted from 0; a layer has four.
  ASSERT_TRUE(RecomputeBlocks(&net.module.main(), net.forward_nodes, {{4, 12}, {16, 20}}).ok());
  ASSERT_TRUE(Validate(&net.module).ok()) << Validate(&net.module).message();
  EXPECT_EQ(RunBoth(net.module, net.inputs), want);
  // The products of these layers are there twice, also after all passes.
  EXPECT_EQ(CountOf(Compiled(net.module), "MatMul"), products + 3);
}

// The bytes of the tensors of one run, after all passes.
size_t ArenaBytes(const Network& net) {
  CompileOptions options;
  options.place.delegates = {"reference"};
  auto model = CompileModule(TestEnvironment(), net.module, options);
  if (!model.ok()) return ADD_FAILURE() << model.status().message(), 0;
  auto session = Session::Create(*std::move(model), 0, {});
  if (!session.ok()) return ADD_FAILURE() << session.status().message(), 0;
  EXPECT_TRUE(RunSession(**session, net.inputs).ok());
  return (*session)->memory().arena_bytes;
}

TEST(Recompute, BudgetIsKept) {
  Network all = DeepNetwork(12);
  size_t arena = ArenaBytes(all);
  const auto want = RunBoth(all.module, all.inputs);
  const auto kept = RecomputeToBudget(&all.module.main(), all.forward_nodes, 1e12);
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  EXPECT_TRUE(kept->segments.empty());
  for (double part : {0.8, 0.6, 0.45}) {
    Network net = DeepNetwork(12);
    const auto plan =
        RecomputeToBudget(&net.module.main(), net.forward_nodes, part * kept->peak_bytes);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_FALSE(plan->segments.empty());
    EXPECT_LE(plan->peak_bytes, part * kept->peak_bytes);
    ASSERT_TRUE(Validate(&net.module).ok()) << Validate(&net.module).message();
    EXPECT_EQ(RunBoth(net.module, net.inputs), want);
    // The less memory is planned, the less a run takes.
    const size_t bytes = ArenaBytes(net);
    EXPECT_LT(bytes, arena) << part;
    arena = bytes;
  }
  EXPECT_EQ(RecomputeToBudget(&all.module.main(), all.forward_nodes, 100).status().code(),
            Code::kLimitExceeded);
}

TEST(Recompute, BlocksThatOverlapAreRefused) {
  Network net = DeepNetwork(2);
  EXPECT_EQ(RecomputeBlocks(&net.module.main(), net.forward_nodes, {{0, 5}, {4, 6}}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      RecomputeBlocks(&net.module.main(), net.forward_nodes, {{0, net.forward_nodes + 1}}).code(),
      Code::kInvalidArgument);
}

}  // namespace
}  // namespace msrt::testing
