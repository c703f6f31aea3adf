// Launches as pairwise costs: each node where a delegate may be launched is tied to the one before
// it in program order.
//
// A node at which every choice launches a delegate is tied directly. If some choices leave the
// launch unchanged (host work, a group that runs later), an extra variable says which delegate
// takes over or, if none does, which one continues. A group that no other launch can interrupt is
// treated as launched at its first node: all its nodes then belong to its delegate, and no such
// variable is needed.
#include <algorithm>

#include "core/place/assign_choices.h"

namespace msrt {
namespace {

// Delegates whose launch costs nothing count as one launcher: changing between them is free, and
// each interrupts the others.
using Launcher = uint32_t;
constexpr Launcher kNoLauncher =
    UINT32_MAX;  // before the first step; as a choice: leaves the launch unchanged

class LaunchChain {
 public:
  LaunchChain(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out)
      : problem_(problem), choices_(choices), out_(*out) {
    uint32_t free = kNoLauncher;
    for (uint32_t d = 0; d < problem.launch_seconds.size(); ++d) {
      if (problem.launch_seconds[d] == 0 && free == kNoLauncher) free = d;
      launcher_of_.push_back(problem.launch_seconds[d] == 0 ? free : d);
    }
    may_launch_before_.push_back(0);
    for (uint32_t n = 0; n < problem.node_count; ++n) {
      const std::span<const uint32_t> options = choices.of(n);
      const bool may_launch = std::any_of(options.begin(), options.end(), [&](uint32_t o) {
        return problem.options[o].nodes.back() == n && problem.options[o].delegate != kHostWork;
      });
      may_launch_before_.push_back(may_launch_before_[n] + may_launch);
    }
    runs_through_.resize(problem.options.size());
    for (uint32_t o = 0; o < problem.options.size(); ++o)
      runs_through_[o] = RunsThrough(problem.options[o].nodes);
  }

  void Add() {
    for (uint32_t n = 0; n < problem_.node_count; ++n) {
      steps_.clear();
      for (uint32_t o : choices_.of(n)) steps_.push_back(TakesOver(o, n));
      const auto passing = std::count(steps_.begin(), steps_.end(), kNoLauncher);
      if (passing == static_cast<std::ptrdiff_t>(steps_.size())) continue;
      if (passing == 0) {
        Tie(n, steps_, steps_);
      } else {
        AddPassing(n);
      }
    }
  }

 private:
  bool MayLaunch(uint32_t n) const { return may_launch_before_[n + 1] != may_launch_before_[n]; }
  // Whether no other delegate can be launched between the first and the last of a group's nodes.
  bool RunsThrough(std::span<const uint32_t> nodes) const {
    const auto own =
        std::count_if(nodes.begin(), nodes.end(), [&](uint32_t n) { return MayLaunch(n); });
    return own == may_launch_before_[nodes.back() + 1] - may_launch_before_[nodes.front()];
  }
  Launcher TakesOver(uint32_t o, uint32_t n) const {
    const AssignOption& option = problem_.options[o];
    if (option.delegate == kHostWork) return kNoLauncher;
    return option.nodes.back() == n || (runs_through_[o] && MayLaunch(n))
               ? launcher_of_[option.delegate]
               : kNoLauncher;
  }

  // Adds a variable that says which delegate takes over or continues.
  void AddPassing(uint32_t n) {
    std::vector<Launcher> takes_over, running;
    for (Launcher l : steps_) {
      if (l == kNoLauncher ||
          std::find(takes_over.begin(), takes_over.end(), l) != takes_over.end())
        continue;
      takes_over.push_back(l);
      running.push_back(l);
    }
    const auto take_overs = takes_over.size();
    for (Launcher l : previous_running_) {
      if (std::find(running.begin() + static_cast<std::ptrdiff_t>(take_overs), running.end(), l) !=
          running.end())
        continue;
      takes_over.push_back(kNoLauncher);
      running.push_back(l);
    }
    const uint32_t variable = out_.AddNode(std::vector<double>(running.size()));
    cells_.clear();
    for (Launcher step : steps_) {
      for (Launcher l : takes_over) cells_.push_back(step == l ? 0 : kForbidden);
    }
    out_.AddEdge(n, variable, cells_);
    Tie(variable, takes_over, running);
  }

  // `takes_over` and `running` are by choice of the variable: the launcher that takes over there,
  // if any, and the one that runs afterwards.
  void Tie(uint32_t variable, std::span<const Launcher> takes_over,
           std::span<const Launcher> running) {
    const auto cost = [&](Launcher before, size_t choice) -> double {
      if (takes_over[choice] == kNoLauncher) return before == running[choice] ? 0 : kForbidden;
      return before == takes_over[choice] ? 0 : problem_.launch_seconds[takes_over[choice]];
    };
    const Launcher first = previous_running_[0];
    const bool known = std::all_of(previous_running_.begin(), previous_running_.end(),
                                   [&](Launcher l) { return l == first; });
    if (known) previous_running_.resize(1);
    cells_.clear();
    for (Launcher before : previous_running_) {
      for (size_t choice = 0; choice < running.size(); ++choice)
        cells_.push_back(cost(before, choice));
    }
    if (known) {
      out_.AddCosts(variable, cells_);
    } else {
      out_.AddEdge(previous_, variable, cells_);
    }
    previous_ = variable;
    previous_running_.assign(running.begin(), running.end());
  }

  const AssignProblem& problem_;
  const ListsByNode& choices_;
  ChoiceProblem& out_;
  std::vector<Launcher> launcher_of_;  // by delegate
  std::vector<int32_t>
      may_launch_before_;           // by node: how many nodes before it end an option of a delegate
  std::vector<bool> runs_through_;  // by option
  std::vector<Launcher> steps_;     // by choice of the current node
  uint32_t previous_ = 0;           // the variable tied last
  std::vector<Launcher> previous_running_ = {kNoLauncher};
  std::vector<double> cells_;
};

}  // namespace

void AddLaunches(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  const bool all_free = std::all_of(problem.launch_seconds.begin(), problem.launch_seconds.end(),
                                    [](double s) { return s == 0; });
  if (!all_free) LaunchChain(problem, choices, out).Add();
}

}  // namespace msrt
