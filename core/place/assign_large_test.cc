// Assign on graphs of realistic size: its time, and that its result is never worse than simple
// assignments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "core/base/clock.h"
#include "core/base/thread_clock.h"
#include "core/place/assign.h"

namespace msrt {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

struct DelegateKind {
  uint16_t device;
  double speed;  // relative to the first delegate
  double launch_seconds;
  std::vector<Layout>
      layouts;  // the layouts it runs any node in, for inputs and outputs; later ones are faster
};

// A network whose nodes several delegates can run.
class Net {
 public:
  Net(std::vector<DelegateKind> delegates, uint32_t seed)
      : delegates_(std::move(delegates)), random_(seed) {
    problem.transfers = {3e-6, 8e9, {}};
    uint16_t devices = 1;
    for (const DelegateKind& d : delegates_) {
      devices = std::max<uint16_t>(devices, d.device + 1);
      problem.launch_seconds.push_back(d.launch_seconds);
    }
    problem.device_caps.assign(devices, kUnbounded);
    problem.transfers.links.assign(devices, {8e-6, 12e9, 10e-6, 12e9});
  }

  uint32_t Input(double bytes) { return AddValue(-1, bytes); }

  // `seconds` on the first delegate; `supported` is a bit for each.
  std::vector<uint32_t> Op(const std::vector<uint32_t>& reads, double seconds, double bytes,
                           size_t outputs = 1, uint32_t supported = ~0u) {
    const uint32_t node = AddNode(reads);
    std::vector<uint32_t> made;
    for (size_t i = 0; i < outputs; ++i)
      made.push_back(AddValue(static_cast<int32_t>(node), bytes));
    for (uint32_t d = 0; d < delegates_.size(); ++d) {
      double layout_gain = 1;
      for (Layout layout : delegates_[d].layouts) {
        const double factor = std::uniform_real_distribution<double>(0.7, 1.3)(random_);
        if ((supported >> d & 1) != 0) {
          AddOption(node, d, reads, made, {delegates_[d].device, layout},
                    seconds / delegates_[d].speed * layout_gain * factor);
        }
        layout_gain *= 0.8;
      }
    }
    return made;
  }

  // Adds a view: runs anywhere at no cost.
  uint32_t View(uint32_t read, double bytes) {
    const uint32_t node = AddNode({read});
    const uint32_t made = AddValue(static_cast<int32_t>(node), bytes);
    for (uint16_t d = 0; d < problem.device_caps.size(); ++d)
      AddOption(node, kHostWork, {read}, {made}, {d, Layout::kPlain}, 0);
    return made;
  }

  void Output(uint32_t v) { problem.values[v].is_output = true; }
  uint32_t Pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  AssignProblem problem;

 private:
  uint32_t AddNode(const std::vector<uint32_t>& reads) {
    for (uint32_t v : reads) problem.values[v].readers.push_back(problem.node_count);
    return problem.node_count++;
  }
  uint32_t AddValue(int32_t producer, double bytes) {
    problem.values.push_back({{bytes, bytes, bytes}, producer, {}, false});
    return static_cast<uint32_t>(problem.values.size() - 1);
  }
  void AddOption(uint32_t node, uint32_t delegate, const std::vector<uint32_t>& reads,
                 const std::vector<uint32_t>& made, TensorState state, double seconds) {
    AssignOption option;
    option.nodes = {node};
    option.delegate = delegate;
    option.device = state.device;
    option.seconds = seconds;
    option.memory_bytes = delegate == kHostWork ? 0 : 1e6 * (1 + node % 7);  // weights
    for (uint32_t v : reads) option.inputs.emplace_back(v, state);
    for (uint32_t v : made) option.outputs.emplace_back(v, state);
    problem.options.push_back(std::move(option));
  }

  std::vector<DelegateKind> delegates_;
  std::mt19937 random_;
};

// Puts every node on the fastest option of `delegate`, or if it has none, on the fastest of the
// first delegate.
std::vector<uint32_t> WhereverPossible(const AssignProblem& problem, uint32_t delegate) {
  std::vector<uint32_t> assignment(problem.node_count, UINT32_MAX);
  const auto rank = [&](const AssignOption& o) {
    return o.delegate == delegate ? 0 : o.delegate == 0 ? 1 : o.delegate == kHostWork ? 2 : 3;
  };
  for (uint32_t o = 0; o < problem.options.size(); ++o) {
    const AssignOption& option = problem.options[o];
    uint32_t& chosen = assignment[option.nodes[0]];
    if (chosen == UINT32_MAX) {
      chosen = o;
      continue;
    }
    const AssignOption& other = problem.options[chosen];
    if (std::pair(rank(option), option.seconds) < std::pair(rank(other), other.seconds)) chosen = o;
  }
  return assignment;
}

void ExpectNoBetterNeighbour(const AssignProblem& problem, const Assignment& assignment) {
  std::vector<uint32_t> changed = assignment.option_of_node;
  for (uint32_t o = 0; o < problem.options.size(); ++o) {
    const uint32_t node = problem.options[o].nodes[0];
    changed[node] = o;
    EXPECT_GE(SecondsOf(problem, changed), assignment.seconds * (1 - 1e-12));
    changed[node] = assignment.option_of_node[node];
  }
}

int Launches(const AssignProblem& problem, std::span<const uint32_t> assignment,
             uint32_t delegate) {
  int launches = 0;
  uint32_t running = kHostWork;
  for (uint32_t o : assignment) {
    const uint32_t next = problem.options[o].delegate;
    if (next == kHostWork) continue;
    launches += next == delegate && running != delegate;
    running = next;
  }
  return launches;
}

// The least time of a chain of nodes on host or accelerator, by dynamic programming over the
// delegate of the latest node.
double BestOfChain(const AssignProblem& problem) {
  const TransferCosts::Link& link = problem.transfers.links[1];
  std::array<double, 2> best = {0, kUnbounded};
  bool begun = false;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const double bytes = problem.values[n].bytes[0];
    std::array<double, 2> next = {kUnbounded, kUnbounded};
    for (const AssignOption& option : problem.options) {
      if (option.nodes[0] != n) continue;
      const uint32_t to = option.delegate;
      for (uint32_t from = 0; from < 2; ++from) {
        double seconds = best[from] + option.seconds;
        if (from != to || !begun) seconds += problem.launch_seconds[to];
        if (from < to) seconds += link.to_seconds + bytes / link.to_bytes_per_second;
        if (from > to) seconds += link.from_seconds + bytes / link.from_bytes_per_second;
        next[to] = std::min(next[to], seconds);
      }
    }
    best = next;
    begun = true;
  }
  return std::min(best[0], best[1] + link.from_seconds +
                               problem.values.back().bytes[0] / link.from_bytes_per_second);
}

// 513 nodes, of which an accelerator supports 274, in 87 runs. Using it for every supported node
// makes such a graph slower.
TEST(AssignLarge, ScatteredSupportNeverSlowsChain) {
  std::vector<uint32_t> takes(87, 1), leaves(88, 1);
  std::mt19937 random(7);
  for (uint32_t i = 87; i < 274; ++i) ++takes[random() % takes.size()];
  for (uint32_t i = 88; i < 513 - 274; ++i) ++leaves[random() % leaves.size()];
  for (const double launch : {0.0, 5e-6, 50e-6, 1e-3}) {
    for (const double speed : {1.5, 8.0, 40.0}) {
      Net net({{0, 1, 0, {Layout::kPlain}}, {1, speed, launch, {Layout::kPlain}}}, 11);
      uint32_t value = net.Input(400e3);
      for (size_t run = 0; run < leaves.size(); ++run) {
        for (uint32_t i = 0; i < leaves[run]; ++i) value = net.Op({value}, 20e-6, 400e3, 1, 1)[0];
        for (uint32_t i = 0; run < takes.size() && i < takes[run]; ++i)
          value = net.Op({value}, 20e-6, 400e3, 1, 3)[0];
      }
      net.Output(value);
      ASSERT_EQ(net.problem.node_count, 513u);
      const Result<Assignment> assignment = Assign(net.problem);
      ASSERT_TRUE(assignment.ok()) << assignment.status().message();
      EXPECT_TRUE(assignment->optimal);
      const double host = SecondsOf(net.problem, WhereverPossible(net.problem, 0));
      const std::vector<uint32_t> greedy_plan = WhereverPossible(net.problem, 1);
      const double greedy = SecondsOf(net.problem, greedy_plan);
      EXPECT_EQ(Launches(net.problem, greedy_plan, 1), 87);
      EXPECT_LE(assignment->seconds, host);
      EXPECT_LE(assignment->seconds, greedy);
      EXPECT_NEAR(assignment->seconds, BestOfChain(net.problem), 1e-12);
      std::printf(
          "launch %4.0f us, accelerator %4.1f x: host %.2f ms, wherever supported %.2f ms, "
          "assignment "
          "%.2f ms with %d launches\n",
          launch * 1e6, speed, host * 1e3, greedy * 1e3, assignment->seconds * 1e3,
          Launches(net.problem, assignment->option_of_node, 1));
    }
  }
}

// A residual network with 14 nodes that the accelerator does not support.
TEST(AssignLarge, FewUnsupportedNodesCostLittle) {
  Net net({{0, 1, 0, {Layout::kPlain, Layout::kBlocked8}},
           {1, 10, 20e-6, {Layout::kPlain, Layout::kChannelsLast}}},
          13);
  uint32_t value = net.Input(600e3);
  int unsupported = 0;
  for (int block = 0; block < 60; ++block) {
    uint32_t branch = net.Op({value}, 300e-6, 600e3)[0];
    const bool lacks = block % 4 == 1 && unsupported < 14;
    unsupported += lacks;
    branch = net.Op({branch}, 30e-6, 600e3, 1, lacks ? 1 : 3)[0];
    branch = net.Op({branch}, 300e-6, 600e3)[0];
    value = net.Op({value, branch}, 30e-6, 600e3)[0];
  }
  net.Output(value);
  ASSERT_EQ(unsupported, 14);
  const Result<Assignment> assignment = Assign(net.problem);
  ASSERT_TRUE(assignment.ok()) << assignment.status().message();
  EXPECT_TRUE(assignment->optimal);
  const double host = SecondsOf(net.problem, WhereverPossible(net.problem, 0));
  const double greedy = SecondsOf(net.problem, WhereverPossible(net.problem, 1));
  EXPECT_LE(assignment->seconds, host);
  EXPECT_LE(assignment->seconds, greedy);
  EXPECT_LT(assignment->seconds, host / 2);
  ExpectNoBetterNeighbour(net.problem, *assignment);
  std::printf("host %.2f ms, wherever supported %.2f ms, assignment %.2f ms\n", host * 1e3,
              greedy * 1e3, assignment->seconds * 1e3);
}

// Residual blocks, blocks of three branches, views; three delegates with their own memory, each in
// one to three layouts.
Net BigNet(uint32_t nodes, double launch) {
  Net net({{0, 1, 0, {Layout::kPlain, Layout::kChannelsLast, Layout::kBlocked8}},
           {1, 3, launch, {Layout::kPlain, Layout::kChannelsLast}},
           {2, 2, launch, {Layout::kPlain}}},
          17);
  const auto support = [&] { return net.Pick(10) < 2 ? 1u : net.Pick(10) < 3 ? 3u : 7u; };
  const auto op = [&](const std::vector<uint32_t>& reads, size_t outputs = 1) {
    return net.Op(reads, 40e-6, 200e3, outputs, support());
  };
  uint32_t value = net.Input(200e3);
  while (net.problem.node_count < nodes) {
    if (net.Pick(2) == 0) {
      uint32_t branch = op({value})[0];
      for (uint32_t i = net.Pick(4); i > 0; --i) branch = op({branch})[0];
      const uint32_t shortcut = net.Pick(3) == 0 ? op({value})[0] : value;
      value = op({op({branch})[0], shortcut})[0];
    } else {
      std::vector<uint32_t> branches = op({value}, 6);
      std::vector<uint32_t> ends;
      for (size_t i = 0; i < 3; ++i)
        ends.push_back(op({op({branches[2 * i], branches[2 * i + 1]})[0]})[0]);
      value = op(ends)[0];
    }
    if (net.Pick(4) == 0) value = net.View(value, 200e3);
  }
  net.Output(value);
  return net;
}

TEST(AssignLarge, AssignsFiveThousandNodesInMilliseconds) {
  for (const double launch : {0.0, 20e-6}) {
    const Net net = BigNet(5000, launch);
    std::vector<double> millis;
    for (int i = 0; i < 5; ++i) {
      const StopWatch watch;
      const Result<Assignment> assignment = Assign(net.problem);
      millis.push_back(watch.Millis());
      ASSERT_TRUE(assignment.ok()) << assignment.status().message();
      EXPECT_TRUE(assignment->optimal);
      for (uint32_t d = 0; d < 3; ++d)
        EXPECT_LE(assignment->seconds, SecondsOf(net.problem, WhereverPossible(net.problem, d)));
    }
    std::sort(millis.begin(), millis.end());
    std::printf("%u nodes, %zu values, %zu options, launch %.0f us: %.1f ms (least %.1f)\n",
                net.problem.node_count, net.problem.values.size(), net.problem.options.size(),
                launch * 1e6, millis[2], millis[0]);
  }
}

// A delegate offers the whole graph as one option: it is chosen if and only if it is faster than
// the best assignment without it.
TEST(AssignLarge, ChoosesWholeGraphOptionIfFaster) {
  Net net = BigNet(5000, 20e-6);
  const double without = Assign(net.problem)->seconds;
  AssignOption whole;
  whole.delegate = 1;
  whole.device = 1;
  for (uint32_t n = 0; n < net.problem.node_count; ++n) whole.nodes.push_back(n);
  whole.inputs = {{0, {1, Layout::kPlain}}};
  whole.outputs = {{static_cast<uint32_t>(net.problem.values.size() - 1), {1, Layout::kPlain}}};
  for (const bool worth_it : {true, false}) {
    whole.seconds = worth_it ? without * 0.9 : without;
    net.problem.options.push_back(whole);
    const StopWatch watch;
    const Result<Assignment> assignment = Assign(net.problem);
    std::printf("one option of %u nodes beside the others: %.1f ms\n", net.problem.node_count,
                watch.Millis());
    ASSERT_TRUE(assignment.ok()) << assignment.status().message();
    EXPECT_TRUE(assignment->optimal);
    const auto chosen =
        std::count(assignment->option_of_node.begin(), assignment->option_of_node.end(),
                   net.problem.options.size() - 1);
    EXPECT_EQ(chosen, worth_it ? static_cast<std::ptrdiff_t>(net.problem.node_count) : 0);
    EXPECT_LE(assignment->seconds, without + 1e-12);
    net.problem.options.pop_back();
  }
}

// A chain for which a device offers every run of up to eight nodes.
TEST(AssignLarge, ChoosesAmongAllRunsOfNodes) {
  constexpr uint32_t kNodes = 500, kLongest = 8;
  Net net({{0, 1, 0, {Layout::kPlain}}, {1, 1.5, 10e-6, {Layout::kPlain}}}, 23);
  uint32_t value = net.Input(100e3);
  for (uint32_t n = 0; n < kNodes; ++n) value = net.Op({value}, 15e-6, 100e3)[0];
  net.Output(value);
  std::mt19937 random(29);
  for (uint32_t n = 0; n < kNodes; ++n) {
    for (uint32_t end = n + 2; end <= std::min(n + kLongest, kNodes); ++end) {
      AssignOption run;
      run.delegate = run.device = 1;
      for (uint32_t i = n; i < end; ++i) run.nodes.push_back(i);
      run.inputs = {{n, {1, Layout::kPlain}}};
      run.outputs = {{end, {1, Layout::kPlain}}};
      run.seconds = 10e-6 * (end - n) * std::uniform_real_distribution<double>(0.5, 1)(random);
      net.problem.options.push_back(run);
    }
  }
  const double begin = ThreadCpuMillis();
  const Result<Assignment> assignment = Assign(net.problem);
  const double millis = ThreadCpuMillis() - begin;
  ASSERT_TRUE(assignment.ok()) << assignment.status().message();
  EXPECT_TRUE(assignment->optimal);
  EXPECT_LT(assignment->seconds, SecondsOf(net.problem, WhereverPossible(net.problem, 0)));
  std::printf("%u nodes, %zu options: %.1f ms\n", kNodes, net.problem.options.size(), millis);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(millis, 200);
#endif
}

// Attention layers that all read one mask, which is an input or, as exporters write it, computed by
// a few nodes.
Net Transformer(int layers, bool mask_is_computed) {
  Net net({{0, 1, 0, {Layout::kPlain, Layout::kChannelsLast, Layout::kBlocked8}},
           {1, 3, 20e-6, {Layout::kPlain, Layout::kChannelsLast}},
           {2, 2, 20e-6, {Layout::kPlain}}},
          19);
  const auto op = [&](const std::vector<uint32_t>& reads) {
    return net.Op(reads, 60e-6, 200e3, 1, net.Pick(8) == 0 ? 3 : 7)[0];
  };
  uint32_t mask = net.Input(50e3), value = net.Input(200e3);
  for (int i = 0; mask_is_computed && i < 3; ++i) mask = op({mask});
  for (int layer = 0; layer < layers; ++layer) {
    std::array<uint32_t, 3> heads;
    for (uint32_t& head : heads) head = net.View(op({value}), 200e3);
    const uint32_t scores = op({op({op({heads[0], heads[1]}), mask})});
    value = op({op({op({op({scores, heads[2]})}), value})});
    value = op({op({op({op({op({value})})}), value})});
  }
  net.Output(value);
  return net;
}

TEST(AssignLarge, SolvesValueReadByAllLayers) {
  for (const bool mask_is_computed : {false, true}) {
    const Net net = Transformer(24, mask_is_computed);
    const StopWatch watch;
    const Result<Assignment> assignment = Assign(net.problem);
    const double millis = watch.Millis();
    ASSERT_TRUE(assignment.ok()) << assignment.status().message();
    EXPECT_TRUE(assignment->optimal);
    ExpectNoBetterNeighbour(net.problem, *assignment);
    for (uint32_t d = 0; d < 3; ++d)
      EXPECT_LE(assignment->seconds, SecondsOf(net.problem, WhereverPossible(net.problem, d)));
    std::printf("%u nodes, mask %s: %.1f ms\n", net.problem.node_count,
                mask_is_computed ? "computed" : "given", millis);
  }
}

// Every node reads several earlier ones, so that the graph has no small cut, and each of seven
// delegates is the fastest for some nodes: too hard to solve in time. The assignment must still be
// no slower than one delegate alone.
TEST(AssignLarge, UnprovenAssignmentIsNoSlowerThanOneDelegate) {
  std::vector<DelegateKind> delegates = {{0, 1, 0, {Layout::kPlain}}};
  for (uint16_t d = 1; d <= 6; ++d) delegates.push_back({d, 1, 10e-6, {Layout::kPlain}});
  Net net(std::move(delegates), 2);
  std::vector<uint32_t> values = {net.Input(5e3)};
  for (int n = 0; n < 150; ++n) {
    std::vector<uint32_t> reads;
    for (size_t v = std::max<size_t>(values.size(), 30) - 30; v < values.size(); ++v) {
      if (v + 1 == values.size() || net.Pick(16) == 0) reads.push_back(values[v]);
    }
    values.push_back(net.Op(reads, 30e-6, 10e3 / (1 + net.Pick(10)))[0]);
  }
  net.Output(values.back());
  for (AssignOption& option : net.problem.options) option.seconds *= 0.5 + 1e-3 * net.Pick(1000);
  const double begin = ThreadCpuMillis();
  const Result<Assignment> assignment = Assign(net.problem);
  const double millis = ThreadCpuMillis() - begin;
  ASSERT_TRUE(assignment.ok()) << assignment.status().message();
  EXPECT_FALSE(assignment->optimal);
  double least = kUnbounded;
  for (uint32_t d = 0; d < net.problem.launch_seconds.size(); ++d) {
    AssignProblem alone = net.problem;
    std::erase_if(alone.options, [&](const AssignOption& o) { return o.delegate != d; });
    least = std::min(least, Assign(alone)->seconds);
  }
  EXPECT_LE(assignment->seconds, least * (1 + 1e-12));
  std::printf(
      "assignment %.3f ms, at least %.3f ms, one delegate alone %.3f ms, found in %.0f ms\n",
      assignment->seconds * 1e3, assignment->lower_bound * 1e3, least * 1e3, millis);
}

double MemoryUsed(const AssignProblem& problem, std::span<const uint32_t> assignment,
                  uint16_t device) {
  double bytes = 0;
  for (uint32_t o : assignment)
    bytes += problem.options[o].device == device ? problem.options[o].memory_bytes : 0;
  return bytes;
}

// The weights do not fit the accelerators: the caps are kept, the time is bounded, and the reported
// gap is small.
TEST(AssignLarge, KeepsCapsOnFiveThousandNodes) {
  Net net = BigNet(5000, 20e-6);
  const Result<Assignment> free = Assign(net.problem);
  ASSERT_TRUE(free.ok()) << free.status().message();
  for (const double share : {0.5, 0.1}) {
    for (uint16_t d = 1; d <= 2; ++d)
      net.problem.device_caps[d] = share * MemoryUsed(net.problem, free->option_of_node, d);
    const StopWatch watch;
    const Result<Assignment> assignment = Assign(net.problem);
    const double millis = watch.Millis();
    ASSERT_TRUE(assignment.ok()) << assignment.status().message();
    for (uint16_t d = 1; d <= 2; ++d)
      EXPECT_LE(MemoryUsed(net.problem, assignment->option_of_node, d), net.problem.device_caps[d]);
    EXPECT_GE(assignment->lower_bound, free->seconds * (1 - 1e-12));
    EXPECT_LE(assignment->lower_bound, assignment->seconds);
    EXPECT_LT(assignment->seconds, 1.002 * assignment->lower_bound);
    std::printf(
        "caps at %.0f %% of what the best assignment uses: %.2f ms instead of %.2f, gap %.3f %%, "
        "found "
        "in %.0f ms\n",
        share * 100, assignment->seconds * 1e3, free->seconds * 1e3,
        100 * (assignment->seconds / assignment->lower_bound - 1), millis);
  }
}

}  // namespace
}  // namespace msrt
