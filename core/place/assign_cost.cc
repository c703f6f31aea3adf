// The cost of an assignment and which options may be part of one: the definition of the problem,
// independent of the solver.
#include <algorithm>
#include <bit>

#include "core/place/assign.h"
#include "core/place/assign_choices.h"

namespace msrt {
namespace {

constexpr double kInfeasible = std::numeric_limits<double>::infinity();

bool Covers(const AssignOption& option, uint32_t node) {
  return std::binary_search(option.nodes.begin(), option.nodes.end(), node);
}

bool ChosenByAllItsNodes(const AssignProblem& problem, std::span<const uint32_t> option_of_node) {
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const AssignOption& option = problem.options[option_of_node[n]];
    if (!Covers(option, n)) return false;
    if (n != option.nodes.back()) continue;
    for (uint32_t member : option.nodes) {
      if (option_of_node[member] != option_of_node[n]) return false;
    }
  }
  return true;
}

double TransferSeconds(const AssignProblem& problem, std::span<const uint32_t> option_of_node,
                       std::span<const uint16_t> carried_on) {
  std::vector<StateSet> made(problem.values.size()), wanted(problem.values.size());
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (problem.values[v].producer < 0) made[v] = SetOf(problem.values[v].home);
    if (problem.values[v].is_output) wanted[v] = SetOf(problem.values[v].home);
  }
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    made[problem.carried[c].begin] = wanted[problem.carried[c].end] =
        SetOf({carried_on[c], Layout::kPlain});
  }
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const AssignOption& option = problem.options[option_of_node[n]];
    if (n != option.nodes.back()) continue;
    for (const auto& [v, state] : option.inputs) wanted[v] |= SetOf(state);
    for (const auto& [v, state] : option.outputs) made[v] |= SetOf(state);
  }
  double seconds = 0;
  for (size_t v = 0; v < problem.values.size(); ++v) {
    if (wanted[v] == 0) continue;
    if (made[v] == 0) return kInfeasible;
    const TensorState state = StateAt(static_cast<uint32_t>(std::countr_zero(made[v])));
    seconds += TransferPrices(problem.transfers, problem.values[v].bytes).Seconds(state, wanted[v]);
  }
  return seconds;
}

}  // namespace

double SecondsOf(const AssignProblem& problem, std::span<const uint32_t> option_of_node,
                 std::span<const uint16_t> carried_on) {
  if (!ChosenByAllItsNodes(problem, option_of_node)) return kInfeasible;
  double seconds = TransferSeconds(problem, option_of_node, carried_on);
  for (size_t c = 0; c < problem.carried.size(); ++c)
    seconds += problem.carried[c].seconds[carried_on[c]];
  uint32_t running = kHostWork;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const AssignOption& option = problem.options[option_of_node[n]];
    if (n != option.nodes.back()) continue;
    seconds += option.seconds;
    if (option.delegate == kHostWork || option.delegate == running) continue;
    running = option.delegate;
    seconds += problem.launch_seconds[running];
  }
  return seconds;
}

Status AdmissibleAmong(const AssignProblem& problem, const AssignOption& option,
                       std::span<const uint32_t> made) {
  const uint32_t last = option.nodes.back();
  for (uint32_t v : made) {
    const AssignValue& value = problem.values[v];
    bool leaves = value.is_output;
    for (uint32_t reader : value.readers) {
      if (Covers(option, reader)) continue;
      leaves = true;
      if (reader < last) {
        return Unsupported("node ", reader, " reads value ", v,
                           ", which would be made only with node ", last,
                           "; leave the nodes from there on out of the group");
      }
    }
    const auto listed = std::count_if(option.outputs.begin(), option.outputs.end(),
                                      [&](const auto& o) { return o.first == v; });
    if (listed > 1)
      return InvalidArgument("value ", v, " is listed as an output ", listed,
                             " times, must be once");
    if (leaves && listed == 0)
      return InvalidArgument("value ", v,
                             " is read outside of the group and must be among its outputs");
  }
  for (const auto& [v, state] : option.outputs) {
    if (std::find(made.begin(), made.end(), v) == made.end())
      return InvalidArgument("output ", v, " is not made by any of its nodes");
  }
  for (const auto& [v, state] : option.inputs) {
    if (std::find(made.begin(), made.end(), v) != made.end())
      return InvalidArgument("input ", v, " is made inside of the group");
    const std::vector<uint32_t>& readers = problem.values[v].readers;
    const auto reads = [&](uint32_t n) {
      return std::binary_search(readers.begin(), readers.end(), n);
    };
    if (std::none_of(option.nodes.begin(), option.nodes.end(), reads)) {
      return InvalidArgument("input ", v, " is not read by any of its nodes");
    }
  }
  return OkStatus();
}

Status Admissible(const AssignProblem& problem, const AssignOption& option) {
  std::vector<uint32_t> made;
  for (uint32_t v = 0; v < problem.values.size(); ++v) {
    const int32_t producer = problem.values[v].producer;
    if (producer >= 0 && Covers(option, static_cast<uint32_t>(producer))) made.push_back(v);
  }
  return AdmissibleAmong(problem, option, made);
}

}  // namespace msrt
