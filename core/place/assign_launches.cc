// Launches as pairwise costs: each step that may be launched is tied to the one before it in program order.
//
// A node where every choice is a step of some delegate is tied by itself. Where some choices leave the launch as it was (host work, the
// earlier nodes of a group) a variable of its own says who takes over or, if nobody does, who goes on.
#include <algorithm>

#include "core/place/assign_model.h"
#include "core/solve/choice.h"

namespace msrt {
namespace {

// Delegates that are launched for nothing are one and the same: to change between them is free, and each interrupts the others.
using Launcher = uint32_t;
constexpr Launcher kNobody = UINT32_MAX;  // before the first step; as a choice: leaves the launch as it was

class LaunchChain {
 public:
  LaunchChain(const AssignProblem& problem, const NodeChoices& choices, AssignModel* model)
      : problem_(problem), choices_(choices), model_(*model) {
    uint32_t free = kNobody;
    for (uint32_t d = 0; d < problem.launch_seconds.size(); ++d) {
      if (problem.launch_seconds[d] == 0 && free == kNobody) free = d;
      launcher_of_.push_back(problem.launch_seconds[d] == 0 ? free : d);
    }
  }

  void Add() {
    for (uint32_t n = 0; n < problem_.node_count; ++n) {
      steps_.clear();
      for (uint32_t o : choices_.of(n)) {
        const AssignOption& option = problem_.options[o];
        const bool is_step = option.nodes.back() == n && option.delegate != kHostWork;
        steps_.push_back(is_step ? launcher_of_[option.delegate] : kNobody);
      }
      const auto passing = std::count(steps_.begin(), steps_.end(), kNobody);
      if (passing == static_cast<std::ptrdiff_t>(steps_.size())) continue;
      if (passing == 0) {
        Tie(n, steps_, steps_);
      } else {
        AddPassing(n);
      }
    }
  }

 private:
  // A variable over who takes over and who goes on.
  void AddPassing(uint32_t n) {
    std::vector<Launcher> takes_over, running;
    for (Launcher l : steps_) {
      if (l == kNobody || std::find(takes_over.begin(), takes_over.end(), l) != takes_over.end()) continue;
      takes_over.push_back(l);
      running.push_back(l);
    }
    const auto take_overs = takes_over.size();
    for (Launcher l : previous_running_) {
      if (std::find(running.begin() + static_cast<std::ptrdiff_t>(take_overs), running.end(), l) != running.end()) continue;
      takes_over.push_back(kNobody);
      running.push_back(l);
    }
    const uint32_t variable = model_.AddVariable(static_cast<uint32_t>(running.size()));
    std::span<double> cells = model_.AddTable(n, variable);
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (size_t j = 0; j < running.size(); ++j) cells[i * running.size() + j] = steps_[i] == takes_over[j] ? 0 : kForbidden;
    }
    Tie(variable, takes_over, running);
  }

  // `takes_over` and `running` by choice of the variable: who is launched there, if anybody, and whose launch it is afterwards.
  void Tie(uint32_t variable, std::span<const Launcher> takes_over, std::span<const Launcher> running) {
    const auto cost = [&](Launcher before, size_t choice) -> double {
      if (takes_over[choice] == kNobody) return before == running[choice] ? 0 : kForbidden;
      return before == takes_over[choice] ? 0 : problem_.launch_seconds[takes_over[choice]];
    };
    const bool known =
        std::all_of(previous_running_.begin(), previous_running_.end(), [&](Launcher l) { return l == previous_running_[0]; });
    if (known) {
      std::span<double> costs = model_.costs(variable);
      for (size_t j = 0; j < running.size(); ++j) costs[j] += cost(previous_running_[0], j);
    } else {
      std::span<double> cells = model_.AddTable(previous_, variable);
      for (size_t i = 0; i < previous_running_.size(); ++i) {
        for (size_t j = 0; j < running.size(); ++j) cells[i * running.size() + j] = cost(previous_running_[i], j);
      }
    }
    previous_ = variable;
    previous_running_.assign(running.begin(), running.end());
  }

  const AssignProblem& problem_;
  const NodeChoices& choices_;
  AssignModel& model_;
  std::vector<Launcher> launcher_of_;  // by delegate
  std::vector<Launcher> steps_;        // by choice of the node at hand
  uint32_t previous_ = 0;              // the variable tied last
  std::vector<Launcher> previous_running_ = {kNobody};
};

}  // namespace

void AddLaunches(const AssignProblem& problem, const NodeChoices& choices, AssignModel* model) {
  const bool all_free = std::all_of(problem.launch_seconds.begin(), problem.launch_seconds.end(), [](double s) { return s == 0; });
  if (!all_free) LaunchChain(problem, choices, model).Add();
}

}  // namespace msrt
