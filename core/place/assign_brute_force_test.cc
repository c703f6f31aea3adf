// Assign against brute force: every assignment of small random problems, each priced by a simulator
// that walks the steps, tracks where every value is, and moves it when it is first wanted. The
// simulator shares no code with the cost model that it checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "core/place/assign.h"

namespace msrt {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

class Dice {
 public:
  explicit Dice(uint32_t seed) : random_(seed) {}
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool Chance(double p) { return static_cast<double>(random_() % 1000) < 1000 * p; }
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

 private:
  std::mt19937 random_;
};

// Lets some devices reach others, and some change layouts.
void AddPaths(uint32_t devices, Dice* dice, TransferCosts* costs) {
  costs->paths.assign(devices, std::vector<TransferCosts::Path>(devices));
  for (auto& row : costs->paths) {
    for (TransferCosts::Path& path : row) {
      if (dice->Chance(0.6)) path = {1.0 * dice->Below(4), 8};
    }
  }
}

// ---- The simulator.

class Simulator {
 public:
  explicit Simulator(const AssignProblem& problem, std::span<const uint16_t> carried_on = {})
      : problem_(&problem),
        home_(problem.values.size()),
        there_(problem.values.size()),
        first_(problem.values.size()) {
    for (size_t v = 0; v < problem.values.size(); ++v) home_[v] = problem.values[v].home;
    for (size_t c = 0; c < carried_on.size(); ++c) {
      const AssignCarried& pair = problem.carried[c];
      home_[pair.begin] = home_[pair.end] = {carried_on[c], Layout::kPlain};
      seconds_ += pair.seconds[carried_on[c]];
    }
    for (size_t v = 0; v < problem.values.size(); ++v) {
      if (problem.values[v].producer < 0) Put(v, home_[v]);
    }
  }

  void Run(const AssignOption& option) {
    for (const auto& [v, state] : option.inputs) Need(v, state);
    if (option.delegate != kHostWork && static_cast<int64_t>(option.delegate) != running_) {
      running_ = option.delegate;
      seconds_ += problem_->launch_seconds[option.delegate];
    }
    seconds_ += option.seconds;
    for (const auto& [v, state] : option.outputs) Put(v, state);
  }
  void Finish() {
    for (size_t v = 0; v < problem_->values.size(); ++v) {
      if (problem_->values[v].is_output) Need(v, home_[v]);
    }
  }
  void Need(size_t v, TensorState state) {
    if (There(v, state)) return;
    ASSERT_TRUE(first_[v].known) << "value " << v << " is read before it is made";
    const double bytes = problem_->values[v].bytes[static_cast<size_t>(state.layout)];
    if (const TransferCosts::Path* path = PathTo(first_[v].state, state); path != nullptr) {
      seconds_ += path->seconds + bytes / path->bytes_per_second;
    } else if (state.device != 0) {
      Need(v, {0, state.layout});
      const TransferCosts::Link& link = problem_->transfers.links[state.device];
      seconds_ += link.to_seconds + bytes / link.to_bytes_per_second;
    } else {
      const TensorState origin = first_[v].state;
      if (!There(v, {0, origin.layout})) {
        const TransferCosts::Link& link = problem_->transfers.links[origin.device];
        seconds_ +=
            link.from_seconds + problem_->values[v].bytes[static_cast<size_t>(origin.layout)] /
                                    link.from_bytes_per_second;
        there_[v][0][static_cast<size_t>(origin.layout)] = true;
        if (state.layout == origin.layout) return;
      }
      seconds_ += problem_->transfers.convert_seconds +
                  2 * bytes / problem_->transfers.convert_bytes_per_second;
    }
    there_[v][state.device][static_cast<size_t>(state.layout)] = true;
  }
  void Put(size_t v, TensorState state) {
    there_[v][state.device][static_cast<size_t>(state.layout)] = true;
    first_[v] = {true, state};
  }
  double seconds() const { return seconds_; }

 private:
  struct Origin {
    bool known = false;
    TensorState state;
  };
  // A device reaches another in the same layout, and itself in another layout.
  const TransferCosts::Path* PathTo(TensorState from, TensorState to) const {
    const auto& paths = problem_->transfers.paths;
    if (paths.empty() || from.device == 0 || to.device == 0) return nullptr;
    const TransferCosts::Path& path = paths[to.device][from.device];
    const bool fits = from.device == to.device || from.layout == to.layout;
    return fits && path.bytes_per_second > 0 ? &path : nullptr;
  }
  bool There(size_t v, TensorState s) const {
    return there_[v][s.device][static_cast<size_t>(s.layout)];
  }

  const AssignProblem* problem_;
  std::vector<TensorState> home_;  // by value: its state at the start and at the end
  std::vector<std::array<std::array<bool, kLayoutCount>, 4>> there_;  // by value, device, layout
  std::vector<Origin> first_;
  int64_t running_ = -1;
  double seconds_ = 0;
};

double Simulate(const AssignProblem& problem, std::span<const uint32_t> option_of_node,
                std::span<const uint16_t> carried_on) {
  Simulator simulator(problem, carried_on);
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const AssignOption& option = problem.options[option_of_node[n]];
    if (option.nodes.back() == n) simulator.Run(option);
  }
  simulator.Finish();
  return simulator.seconds();
}

// ---- Brute force over every assignment that keeps the caps.

class BruteForce {
 public:
  BruteForce(const AssignProblem& problem, const std::vector<bool>& allowed)
      : problem_(problem),
        allowed_(allowed),
        chosen_(problem.node_count, kUnset),
        used_(problem.device_caps.size()) {
    carried_on_.resize(problem.carried.size());
    ChooseCarried(0);
  }
  double best() const { return best_; }
  size_t assignments() const { return assignments_; }
  struct Sample {
    std::vector<uint32_t> options;
    std::vector<uint16_t> carried_on;
  };
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  static constexpr uint32_t kUnset = UINT32_MAX;

  void ChooseCarried(size_t c) {
    if (c == carried_on_.size()) return Choose(0, Simulator(problem_, carried_on_));
    for (uint16_t d = 0; d < problem_.device_caps.size(); ++d) {
      carried_on_[c] = d;
      if (problem_.carried[c].seconds[d] != kImpossible) ChooseCarried(c + 1);
    }
  }
  void Choose(uint32_t n, const Simulator& before) {
    if (n == problem_.node_count) {
      Simulator after = before;
      after.Finish();
      best_ = std::min(best_, after.seconds());
      if (assignments_++ % 97 == 0) samples_.push_back({chosen_, carried_on_});
    } else if (chosen_[n] != kUnset) {
      Continue(n, before);
    } else {
      for (uint32_t o = 0; o < problem_.options.size(); ++o) Try(n, o, before);
    }
  }
  void Try(uint32_t n, uint32_t o, const Simulator& before) {
    const AssignOption& option = problem_.options[o];
    if (!allowed_[o] || option.nodes[0] != n) return;
    for (uint32_t member : option.nodes) {
      if (chosen_[member] != kUnset) return;
    }
    used_[option.device] += option.memory_bytes;
    if (used_[option.device] <= problem_.device_caps[option.device]) {
      for (uint32_t member : option.nodes) chosen_[member] = o;
      Continue(n, before);
      for (uint32_t member : option.nodes) chosen_[member] = kUnset;
    }
    used_[option.device] -= option.memory_bytes;
  }
  void Continue(uint32_t n, const Simulator& before) {
    const AssignOption& option = problem_.options[chosen_[n]];
    if (option.nodes.back() != n) return Choose(n + 1, before);
    Simulator after = before;
    after.Run(option);
    Choose(n + 1, after);
  }

  const AssignProblem& problem_;
  const std::vector<bool>& allowed_;
  std::vector<uint32_t> chosen_;
  std::vector<double> used_;
  double best_ = kImpossible;
  size_t assignments_ = 0;
  std::vector<uint16_t> carried_on_;
  std::vector<Sample> samples_;
};

// ---- Random problems.

struct Links {
  std::vector<std::vector<uint32_t>> reads, makes;  // values, by node
};

struct RandomProblem {
  AssignProblem problem;
  std::vector<bool> allowed;  // by option: admissible
  bool whole_numbers;         // every sum is exact, and there are many ties
};

class Generator {
 public:
  explicit Generator(uint32_t seed) : dice_(seed) {}

  RandomProblem Make() {
    do {
      out_ = {};
      links_ = {};
      out_.whole_numbers = dice_.Chance(0.5);
      MakeCosts();
      MakeGraph();
      if (dice_.Chance(0.5)) MakeCarried();
      for (uint32_t n = 0; n < p().node_count; ++n) MakeOptions(n);
      for (uint32_t i = dice_.Below(4); i > 0 && p().node_count > 1; --i) MakeGroup();
      if (dice_.Chance(0.35)) MakeCaps();
    } while (PlanBound() > 30000);
    for (const AssignOption& option : p().options) out_.allowed.push_back(KeepsOrder(option));
    return out_;
  }

 private:
  AssignProblem& p() { return out_.problem; }
  double Amount(uint32_t below) {
    return out_.whole_numbers ? dice_.Below(below) : dice_.Between(0, below);
  }
  Layout AnyLayout() { return static_cast<Layout>(dice_.Below(kLayoutCount)); }

  void MakeCosts() {
    const bool own_memory = dice_.Chance(0.6), launches = dice_.Chance(0.7);
    delegates_ = 1 + dice_.Below(3);
    const uint32_t devices = own_memory ? 2 + dice_.Below(2) : 1;
    p().device_caps.assign(devices, kImpossible);
    p().transfers.convert_seconds = Amount(4);
    p().transfers.convert_bytes_per_second = 4;
    p().transfers.links.resize(devices);
    for (TransferCosts::Link& link : p().transfers.links) link = {Amount(4), 4, Amount(4), 8};
    if (devices > 1 && dice_.Chance(0.6)) AddPaths(devices, &dice_, &p().transfers);
    for (uint32_t d = 0; d < delegates_; ++d)
      p().launch_seconds.push_back(launches && dice_.Chance(0.7) ? Amount(8) : 0);
  }

  void AddValue(int32_t producer) {
    AssignValue value;
    const double bytes = 8.0 * dice_.Below(6);
    value.bytes = {bytes, bytes, bytes + 8.0 * dice_.Below(2), bytes + 8.0 * dice_.Below(3)};
    value.producer = producer;
    p().values.push_back(value);
  }

  void MakeGraph() {
    p().node_count = 1 + dice_.Below(9);
    for (uint32_t i = 1 + dice_.Below(2); i > 0; --i) AddValue(-1);
    links_.reads.resize(p().node_count);
    links_.makes.resize(p().node_count);
    for (uint32_t n = 0; n < p().node_count; ++n) {
      const auto known = static_cast<uint32_t>(p().values.size());
      for (uint32_t i = 1 + dice_.Below(3); i > 0; --i) {
        const uint32_t v =
            dice_.Chance(0.5) ? dice_.Below(known) : known - 1 - dice_.Below(std::min(known, 3u));
        std::vector<uint32_t>& reads = links_.reads[n];
        if (std::find(reads.begin(), reads.end(), v) != reads.end()) continue;
        reads.push_back(v);
        p().values[v].readers.push_back(n);
      }
      for (uint32_t i = dice_.Chance(0.3) ? 2 : 1; i > 0; --i) {
        links_.makes[n].push_back(static_cast<uint32_t>(p().values.size()));
        AddValue(static_cast<int32_t>(n));
      }
    }
    for (AssignValue& value : p().values) {
      value.is_output = dice_.Chance(value.readers.empty() ? 0.8 : 0.15);
      if (dice_.Chance(0.2))
        value.home.device =
            static_cast<uint16_t>(dice_.Below(static_cast<uint32_t>(p().device_caps.size())));
    }
  }

  // Pairs values that no node makes with outputs that a node makes.
  void MakeCarried() {
    std::vector<uint32_t> ends;
    for (uint32_t v = 0; v < p().values.size(); ++v) {
      if (p().values[v].producer >= 0 && p().values[v].is_output) ends.push_back(v);
    }
    for (uint32_t v = 0; v < p().values.size() && p().values[v].producer < 0 && !ends.empty();
         ++v) {
      p().values[v].is_output = false;
      AssignCarried pair{v, ends.back(), {Amount(12)}};
      ends.pop_back();
      while (pair.seconds.size() < p().device_caps.size())
        pair.seconds.push_back(dice_.Chance(0.15) ? kImpossible : Amount(3));
      p().carried.push_back(std::move(pair));
    }
  }

  void MakeOptions(uint32_t n) {
    const auto devices = static_cast<uint16_t>(p().device_caps.size());
    const bool is_view = dice_.Chance(0.2);
    for (uint16_t d = 0; is_view && d < devices; ++d) {
      AssignOption view = Bare({n});
      view.device = d;
      SetStates(&view, {d, Layout::kPlain}, {d, Layout::kPlain});
      p().options.push_back(view);
    }
    const size_t before = p().options.size();
    do {
      for (uint32_t d = 0; d < delegates_; ++d) {
        if (dice_.Chance(is_view ? 0.1 : 0.6)) MakeOption({n}, d);
        if (dice_.Chance(is_view ? 0 : 0.3)) MakeOption({n}, d);
      }
    } while (!is_view && p().options.size() == before);
    if (dice_.Chance(0.1)) {  // the same option, slower or with more memory
      AssignOption twin = p().options.back();
      twin.seconds += Amount(3);
      twin.memory_bytes = dice_.Below(6);
      p().options.push_back(twin);
    }
  }

  void MakeOption(std::vector<uint32_t> nodes, uint32_t delegate) {
    AssignOption option = Bare(std::move(nodes));
    option.delegate = delegate;
    option.device = static_cast<uint16_t>(std::min<size_t>(delegate, p().device_caps.size() - 1));
    SetStates(&option, {option.device, AnyLayout()}, {option.device, AnyLayout()});
    if (dice_.Chance(0.2) && !option.inputs.empty())
      option.inputs.back().second = {0, Layout::kPlain};
    if (dice_.Chance(0.1) && !option.inputs.empty())
      option.inputs.emplace_back(option.inputs[0].first, TensorState{0, AnyLayout()});
    option.seconds = Amount(12);
    option.memory_bytes = dice_.Below(6);
    p().options.push_back(option);
  }

  // Some groups are admissible, some are not; some contain a node that no option runs alone.
  void MakeGroup() {
    std::vector<uint32_t> nodes = {dice_.Below(p().node_count - 1)};
    for (uint32_t n = nodes[0] + 1; n < p().node_count && nodes.size() < 4; ++n) {
      if (dice_.Chance(0.5)) nodes.push_back(n);
    }
    if (nodes.size() == 1) nodes.push_back(p().node_count - 1);
    if (dice_.Chance(0.1))
      std::erase_if(p().options, [&](const AssignOption& o) {
        return o.nodes.size() == 1 && o.nodes[0] == nodes[1];
      });
    MakeOption(nodes, dice_.Below(delegates_));
  }

  static bool Has(const std::vector<uint32_t>& list, uint32_t x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  }
  bool ReadOutside(uint32_t v, const std::vector<uint32_t>& nodes, uint32_t before) const {
    for (uint32_t n = 0; n < before; ++n) {
      if (!Has(nodes, n) && Has(links_.reads[n], v)) return true;
    }
    return false;
  }
  // An option with its borders, all in state (host, plain).
  AssignOption Bare(std::vector<uint32_t> nodes) {
    AssignOption option;
    option.nodes = std::move(nodes);
    std::vector<uint32_t> made, read;
    for (uint32_t n : option.nodes)
      made.insert(made.end(), links_.makes[n].begin(), links_.makes[n].end());
    for (uint32_t n : option.nodes) {
      for (uint32_t v : links_.reads[n]) {
        if (!Has(made, v) && !Has(read, v)) read.push_back(v);
      }
    }
    for (uint32_t v : read) option.inputs.emplace_back(v, kHostPlain);
    for (uint32_t v : made) {
      if (p().values[v].is_output || ReadOutside(v, option.nodes, p().node_count))
        option.outputs.emplace_back(v, kHostPlain);
    }
    return option;
  }
  void SetStates(AssignOption* option, TensorState in, TensorState out) {
    for (auto& border : option->inputs) border.second = in;
    for (auto& border : option->outputs) border.second = out;
  }
  bool KeepsOrder(const AssignOption& option) const {
    for (uint32_t n : option.nodes) {
      for (uint32_t v : links_.makes[n]) {
        if (ReadOutside(v, option.nodes, option.nodes.back())) return false;
      }
    }
    return true;
  }

  void MakeCaps() {
    for (size_t d = 0; d < p().device_caps.size(); ++d) {
      if (dice_.Chance(0.7)) p().device_caps[d] = dice_.Below(3 * p().node_count + 1);
    }
  }
  double PlanBound() {
    std::vector<double> ways(p().node_count);
    for (const AssignOption& option : p().options) ++ways[option.nodes[0]];
    double assignments = std::pow(p().device_caps.size(), p().carried.size());
    for (double w : ways) assignments *= std::max(w, 1.0);
    return assignments;
  }

  Dice dice_;
  RandomProblem out_;
  Links links_;
  uint32_t delegates_ = 1;
};

void ExpectSame(double a, double b, bool exactly) {
  if (exactly) {
    EXPECT_EQ(a, b);
  } else {
    EXPECT_NEAR(a, b, 1e-12 * std::max(1.0, std::abs(b)));
  }
}

constexpr uint32_t kSeeds = 1500;

TEST(AssignBruteForce, RandomProblemsMatchBruteForce) {
  int infeasible = 0, capped = 0, groups_chosen = 0, groups_refused = 0, carried = 0,
      carried_on_devices = 0;
  size_t assignments = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomProblem random = Generator(seed).Make();
    const AssignProblem& problem = random.problem;
    const BruteForce brute(problem, random.allowed);
    assignments += brute.assignments();
    for (const auto& [options, carried_on] : brute.samples()) {
      ExpectSame(SecondsOf(problem, options, carried_on), Simulate(problem, options, carried_on),
                 random.whole_numbers);
    }
    const Result<Assignment> assignment = Assign(problem);
    if (brute.best() == kImpossible) {
      AssignProblem without_caps = problem;
      without_caps.device_caps.assign(problem.device_caps.size(), kImpossible);
      const bool coverable = BruteForce(without_caps, random.allowed).best() != kImpossible;
      EXPECT_EQ(assignment.status().code(), coverable ? Code::kLimitExceeded : Code::kUnsupported)
          << assignment.status().message();
      ++infeasible;
      continue;
    }
    ASSERT_TRUE(assignment.ok()) << assignment.status().message();
    EXPECT_TRUE(assignment->optimal);
    EXPECT_EQ(assignment->lower_bound, assignment->seconds);
    ExpectSame(assignment->seconds, brute.best(), random.whole_numbers);
    ExpectSame(Simulate(problem, assignment->option_of_node, assignment->carried_on), brute.best(),
               random.whole_numbers);
    ASSERT_EQ(assignment->carried_on.size(), problem.carried.size());
    carried += static_cast<int>(problem.carried.size());
    carried_on_devices +=
        static_cast<int>(std::count_if(assignment->carried_on.begin(), assignment->carried_on.end(),
                                       [](uint16_t d) { return d != 0; }));
    std::vector<double> used(problem.device_caps.size());
    for (uint32_t n = 0; n < problem.node_count; ++n) {
      const AssignOption& option = problem.options[assignment->option_of_node[n]];
      EXPECT_TRUE(random.allowed[assignment->option_of_node[n]]);
      if (option.nodes.back() != n) continue;
      used[option.device] += option.memory_bytes;
      groups_chosen += option.nodes.size() > 1;
    }
    for (size_t d = 0; d < used.size(); ++d) {
      EXPECT_LE(used[d], problem.device_caps[d]);
      capped += problem.device_caps[d] != kImpossible;
    }
    groups_refused += static_cast<int>(assignment->refused.size());
    EXPECT_EQ(assignment->refused.size(),
              static_cast<size_t>(std::count(random.allowed.begin(), random.allowed.end(), false)));
    if (HasFailure()) break;
  }
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(capped, 200);
  EXPECT_GT(groups_chosen, 200);
  EXPECT_GT(groups_refused, 200);
  EXPECT_GT(carried_on_devices, 100);
  std::printf(
      "%zu assignments tried; %d problems without one, %d caps kept, %d groups chosen, %d refused; "
      "%d of "
      "%d carried pairs on a device\n",
      assignments, infeasible, capped, groups_chosen, groups_refused, carried_on_devices, carried);
}

// One value, made in any of several states and wanted in so many that there are too many sets of
// states to list.
TEST(AssignBruteForce, ValueWantedInManyStatesMatchesBruteForce) {
  for (uint32_t seed = 0; seed < 15; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    AssignProblem problem;
    problem.node_count = 6;
    problem.device_caps.assign(4, kImpossible);
    problem.launch_seconds = {0};
    problem.transfers = {1.0 * dice.Below(4), 4, {}};
    for (int d = 0; d < 4; ++d)
      problem.transfers.links.push_back({1.0 * dice.Below(4), 4, 1.0 * dice.Below(4), 8});
    if (seed % 3 != 0) AddPaths(4, &dice, &problem.transfers);
    problem.values.resize(1);
    problem.values[0] = {.bytes = {16, 16, 24, 32},
                         .producer = 0,
                         .readers = {1, 2, 3, 4, 5},
                         .is_output = dice.Chance(0.3)};
    std::set<StateSet> sets = {0};
    for (uint32_t n = 0; n < problem.node_count; ++n) {
      std::set<StateSet> unions;
      for (uint32_t i = 0; i < 6; ++i) {
        AssignOption option;
        option.nodes = {n};
        option.delegate = 0;
        option.seconds = dice.Below(16);
        const TensorState state = StateAt((i * 5 + n * 7 + dice.Below(3)) % (4 * kLayoutCount));
        (n == 0 ? option.outputs : option.inputs).emplace_back(0, state);
        problem.options.push_back(option);
        for (StateSet set : sets) unions.insert(n == 0 ? 0 : set | SetOf(state));
      }
      sets.swap(unions);
    }
    EXPECT_GT(sets.size(), 256u);
    const Result<Assignment> assignment = Assign(problem);
    ASSERT_TRUE(assignment.ok()) << assignment.status().message();
    EXPECT_TRUE(assignment->optimal);
    EXPECT_EQ(assignment->seconds,
              BruteForce(problem, std::vector<bool>(problem.options.size(), true)).best());
  }
}

TEST(AssignBruteForce, OrderOfWantsDoesNotChangeCost) {
  Dice dice(5);
  AssignProblem problem;
  problem.values.resize(1);
  problem.device_caps.assign(3, kImpossible);
  problem.transfers.links.resize(3);
  for (int round = 0; round < 2000; ++round) {
    for (double& bytes : problem.values[0].bytes) bytes = 8.0 * dice.Below(6);
    problem.values[0].producer = 0;
    problem.transfers.convert_seconds = dice.Below(5);
    problem.transfers.convert_bytes_per_second = 4;
    for (TransferCosts::Link& link : problem.transfers.links)
      link = {1.0 * dice.Below(5), 4, 1.0 * dice.Below(5), 8};
    problem.transfers.paths.clear();
    if (round % 3 != 0) AddPaths(3, &dice, &problem.transfers);
    const TensorState made = StateAt(dice.Below(3 * kLayoutCount));
    std::vector<TensorState> wants;
    StateSet set = 0;
    for (uint32_t i = 1 + dice.Below(6); i > 0; --i)
      wants.push_back(StateAt(dice.Below(3 * kLayoutCount)));
    for (TensorState s : wants) set |= SetOf(s);
    const double closed_form =
        TransferPrices(problem.transfers, problem.values[0].bytes).Seconds(made, set);
    std::sort(wants.begin(), wants.end());
    do {
      Simulator simulator(problem);
      simulator.Put(0, made);
      for (TensorState s : wants) simulator.Need(0, s);
      ASSERT_EQ(simulator.seconds(), closed_form);
    } while (std::next_permutation(wants.begin(), wants.end()));
  }
}

}  // namespace
}  // namespace msrt
