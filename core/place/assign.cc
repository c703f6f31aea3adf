#include "core/place/assign.h"

#include <algorithm>
#include <cmath>

#include "core/place/assign_choices.h"

namespace msrt {
namespace {

// Far beyond any machine, and no sum or quotient of them comes near what the solver takes for forbidden.
constexpr double kMost = 1e30;
bool IsAmount(double x) { return x >= 0 && x <= kMost; }
bool IsRate(double x) { return x >= 1 / kMost; }

bool Ascending(std::span<const uint32_t> nodes) {
  return std::adjacent_find(nodes.begin(), nodes.end(), std::greater_equal<>()) == nodes.end();
}

Status CheckDevices(const AssignProblem& problem) {
  const size_t devices = problem.device_caps.size();
  if (devices == 0 || devices > kMaxDevices) return InvalidArgument(devices, " devices, must be 1 to ", kMaxDevices);
  const TransferCosts& t = problem.transfers;
  if (t.links.size() != devices) return InvalidArgument(t.links.size(), " links for ", devices, " devices, must be one each");
  if (!IsAmount(t.convert_seconds) || !IsRate(t.convert_bytes_per_second)) {
    return InvalidArgument("layout changes: ", t.convert_seconds, " s and ", t.convert_bytes_per_second, " B/s, must be positive numbers");
  }
  for (size_t d = 0; d < devices; ++d) {
    const TransferCosts::Link& link = t.links[d];
    if (d > 0 && !(IsAmount(link.to_seconds) && IsAmount(link.from_seconds) && IsRate(link.to_bytes_per_second) &&
                   IsRate(link.from_bytes_per_second))) {
      return InvalidArgument("device ", d, ": its link's times must be numbers of at least 0 and its rates above 0");
    }
    if (!(problem.device_caps[d] >= 0)) return InvalidArgument("device ", d, ": cap ", problem.device_caps[d], ", must be at least 0");
  }
  return OkStatus();
}

Status CheckValues(const AssignProblem& problem) {
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const AssignValue& value = problem.values[v];
    for (double bytes : value.bytes) {
      if (!IsAmount(bytes)) return InvalidArgument("value ", v, ": ", bytes, " bytes, must be a number of at least 0");
    }
    if (value.producer < -1 || value.producer >= static_cast<int64_t>(problem.node_count)) {
      return InvalidArgument("value ", v, ": producer ", value.producer, " is no node");
    }
    if (value.readers.empty()) continue;
    if (!Ascending(value.readers) || value.readers.back() >= problem.node_count || value.readers.front() <= int64_t{value.producer}) {
      return InvalidArgument("value ", v, ": its readers must be nodes after its producer, ascending, each once");
    }
  }
  return OkStatus();
}

Status CheckCarried(const AssignProblem& problem) {
  std::vector<bool> seen(problem.values.size());
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    const AssignCarried& pair = problem.carried[c];
    for (uint32_t v : {pair.begin, pair.end}) {
      if (v >= seen.size() || seen[v]) return InvalidArgument("carried pair ", c, ": value ", v, " is out of range or carried twice");
      seen[v] = true;
    }
    const AssignValue &begin = problem.values[pair.begin], &end = problem.values[pair.end];
    if (begin.producer >= 0 || begin.is_output || end.producer < 0 || !end.is_output) {
      return InvalidArgument("carried pair ", c, ": must begin as what no node makes and end as an output that one makes");
    }
    const auto cost = [](double s) { return IsAmount(s) || std::isinf(s); };
    if (pair.seconds.size() != problem.device_caps.size() || !std::all_of(pair.seconds.begin(), pair.seconds.end(), cost)) {
      return InvalidArgument("carried pair ", c, ": must have seconds of at least 0 for each device");
    }
  }
  return OkStatus();
}

Status CheckOptions(const AssignProblem& problem) {
  const size_t devices = problem.device_caps.size();
  for (size_t o = 0; o < problem.options.size(); ++o) {
    const AssignOption& option = problem.options[o];
    if (option.nodes.empty() || !Ascending(option.nodes) || option.nodes.back() >= problem.node_count) {
      return InvalidArgument("option ", o, ": its nodes must be ascending, each once, below ", problem.node_count);
    }
    if (option.delegate != kHostWork && option.delegate >= problem.launch_seconds.size()) {
      return InvalidArgument("option ", o, ": delegate ", option.delegate, " has no launch cost");
    }
    if (!IsAmount(option.seconds) || !IsAmount(option.memory_bytes) || option.device >= devices) {
      return InvalidArgument("option ", o, ": ", option.seconds, " s and ", option.memory_bytes, " bytes on device ", option.device,
                             ", must be numbers of at least 0 and one of ", devices, " devices");
    }
    for (const auto* border : {&option.inputs, &option.outputs}) {
      for (const auto& [v, state] : *border) {
        if (v >= problem.values.size() || state.device >= devices || static_cast<uint32_t>(state.layout) >= kLayoutCount) {
          return InvalidArgument("option ", o, ": value ", v, " on device ", state.device, " is out of range");
        }
      }
    }
  }
  return OkStatus();
}

Status Check(const AssignProblem& problem) {
  MSRT_RETURN_IF_ERROR(CheckDevices(problem));
  for (size_t d = 0; d < problem.launch_seconds.size(); ++d) {
    if (!IsAmount(problem.launch_seconds[d])) {
      return InvalidArgument("delegate ", d, ": launch of ", problem.launch_seconds[d], " s, must be a number of at least 0");
    }
  }
  MSRT_RETURN_IF_ERROR(CheckValues(problem));
  MSRT_RETURN_IF_ERROR(CheckCarried(problem));
  return CheckOptions(problem);
}

// Lists of numbers by a key below `keys`, in one piece. `each(emit)` calls emit(key, number) for everything, the same way twice.
template <typename Each>
ListsByNode ListBy(uint32_t keys, const Each& each) {
  ListsByNode lists;
  lists.first.assign(keys + 1, 0);
  each([&](uint32_t key, uint32_t) { ++lists.first[key + 1]; });
  for (uint32_t k = 0; k < keys; ++k) lists.first[k + 1] += lists.first[k];
  lists.numbers.resize(lists.first[keys]);
  std::vector<uint32_t> next(lists.first.begin(), lists.first.end() - 1);
  each([&](uint32_t key, uint32_t number) { lists.numbers[next[key]++] = number; });
  return lists;
}

std::vector<uint32_t> RefusedOptions(const AssignProblem& problem) {
  const ListsByNode made_by = ListBy(problem.node_count, [&](const auto& emit) {
    for (uint32_t v = 0; v < problem.values.size(); ++v) {
      if (problem.values[v].producer >= 0) emit(static_cast<uint32_t>(problem.values[v].producer), v);
    }
  });
  std::vector<uint32_t> refused, made;
  for (uint32_t o = 0; o < problem.options.size(); ++o) {
    const AssignOption& option = problem.options[o];
    made.clear();
    for (uint32_t n : option.nodes) made.insert(made.end(), made_by.of(n).begin(), made_by.of(n).end());
    if (!AdmissibleAmong(problem, option, made).ok()) refused.push_back(o);
  }
  return refused;
}

// Nothing but time and memory differs, and neither is better.
bool NoBetter(const AssignOption& option, const AssignOption& than) {
  return option.seconds >= than.seconds && option.memory_bytes >= than.memory_bytes && option.delegate == than.delegate &&
         option.device == than.device && option.nodes == than.nodes && option.inputs == than.inputs && option.outputs == than.outputs;
}

ListsByNode MakeChoices(const AssignProblem& problem, std::span<const uint32_t> refused) {
  std::vector<bool> left_out(problem.options.size());
  for (uint32_t o : refused) left_out[o] = true;
  const ListsByNode by_last = ListBy(problem.node_count, [&](const auto& emit) {
    for (uint32_t o = 0; o < problem.options.size(); ++o) {
      if (!left_out[o]) emit(problem.options[o].nodes.back(), o);
    }
  });
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const std::span<const uint32_t> options = by_last.of(n);
    for (uint32_t a : options) {
      left_out[a] = std::any_of(options.begin(), options.end(),
                                [&](uint32_t b) { return a != b && !left_out[b] && NoBetter(problem.options[a], problem.options[b]); });
    }
  }
  return ListBy(problem.node_count, [&](const auto& emit) {
    for (uint32_t o = 0; o < problem.options.size(); ++o) {
      if (left_out[o]) continue;
      for (uint32_t n : problem.options[o].nodes) emit(n, o);
    }
  });
}

// The nodes of an option choose it together or not at all: neighbours in its list forbid each other to differ. One table for each pair
// of neighbours, however many options they share: delegates that offer runs of nodes share most of them.
void AddGroups(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  std::vector<std::pair<uint32_t, uint32_t>> next;         // of the node at hand: its neighbour and the option that makes it one
  std::vector<uint8_t> is_shared(problem.options.size());  // by the node at hand and one neighbour
  std::vector<double> cells;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    next.clear();
    for (uint32_t o : choices.of(n)) {
      const std::vector<uint32_t>& nodes = problem.options[o].nodes;
      const auto after = std::upper_bound(nodes.begin(), nodes.end(), n);
      if (after != nodes.end()) next.emplace_back(*after, o);
    }
    std::sort(next.begin(), next.end());
    for (size_t begin = 0, end; begin < next.size(); begin = end) {
      const uint32_t neighbour = next[begin].first;
      for (end = begin; end < next.size() && next[end].first == neighbour; ++end) is_shared[next[end].second] = 1;
      cells.clear();
      for (uint32_t a : choices.of(n)) {
        for (uint32_t b : choices.of(neighbour)) cells.push_back(a != b && (is_shared[a] || is_shared[b]) ? kForbidden : 0);
      }
      out->AddEdge(n, neighbour, cells);
      for (size_t i = begin; i < end; ++i) is_shared[next[i].second] = 0;
    }
  }
}

// The nodes as variables, with what `cost` says of an option.
template <typename CostOfOption>
ChoiceProblem NodeVariables(const AssignProblem& problem, const ListsByNode& choices, const CostOfOption& cost) {
  ChoiceProblem out;
  std::vector<double> costs;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    costs.clear();
    for (uint32_t o : choices.of(n)) costs.push_back(problem.options[o].nodes.back() == n ? cost(problem.options[o]) : 0);
    out.AddNode(costs);
  }
  AddGroups(problem, choices, &out);
  return out;
}

void AddCarried(const AssignProblem& problem, ChoiceProblem* out) {
  std::vector<double> costs;
  for (const AssignCarried& pair : problem.carried) {
    costs.clear();
    for (double s : pair.seconds) costs.push_back(std::isinf(s) ? kForbidden : s);
    out->AddNode(costs);
  }
}

double MemoryOn(const AssignOption& option, size_t device) { return option.device == device ? option.memory_bytes : 0; }

// Caps that could be passed at all.
void AddCaps(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  for (size_t d = 0; d < problem.device_caps.size(); ++d) {
    if (std::isinf(problem.device_caps[d])) continue;
    std::vector<std::pair<uint32_t, std::vector<double>>> uses;
    double most = 0;
    for (uint32_t n = 0; n < problem.node_count; ++n) {
      std::vector<double> use;
      for (uint32_t o : choices.of(n)) use.push_back(problem.options[o].nodes.back() == n ? MemoryOn(problem.options[o], d) : 0);
      const double largest = *std::max_element(use.begin(), use.end());
      if (largest == 0) continue;
      most += largest;
      uses.emplace_back(n, std::move(use));
    }
    if (most > problem.device_caps[d]) out->AddCap(problem.device_caps[d], std::move(uses));
  }
}

// Caps that bind are branched on, and each branch solves the whole: this many keep a large graph within a fraction of a second and
// leave a gap of less than 0.1 % there, while small ones are solved to the end.
SolveOptions OptionsFor(const ChoiceProblem& problem) {
  SolveOptions options;
  options.max_branches = std::clamp<int64_t>(80000 / std::max(problem.graph().node_count(), 1u), 16, options.max_branches);
  return options;
}

ChoiceSolution SolveInTime(const ChoiceProblem& problem) {
  ChoiceSolution solution = Solve(problem, OptionsFor(problem));
  // Any plan is worth more time than none.
  if (!solution.feasible && solution.lower_bound < kForbidden) solution = Solve(problem);
  return solution;
}

// Why there is no plan.
Status NoPlan(const AssignProblem& problem, const ListsByNode& choices, const ChoiceSolution& solution) {
  for (size_t d = 0; d < problem.device_caps.size(); ++d) {
    const ChoiceSolution least = Solve(NodeVariables(problem, choices, [&](const AssignOption& option) { return MemoryOn(option, d); }));
    if (!least.feasible) return Unsupported("no set of options covers every node once; offer each node alone as well");
    if (least.lower_bound > problem.device_caps[d]) {
      return LimitExceeded("device ", d, " needs at least ", least.lower_bound, " bytes and its cap is ", problem.device_caps[d],
                           "; raise the cap or allow a delegate on another device");
    }
  }
  if (solution.lower_bound == kForbidden) {
    return LimitExceeded("the memory caps can be kept for each device alone but not for all together; raise one of them");
  }
  return LimitExceeded("no plan within the memory caps was found; raise a cap or allow fewer delegates");
}

}  // namespace

Result<Assignment> Assign(const AssignProblem& problem) {
  MSRT_RETURN_IF_ERROR(Check(problem));
  Assignment plan;
  plan.refused = RefusedOptions(problem);
  const ListsByNode choices = MakeChoices(problem, plan.refused);
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    if (choices.of(n).empty()) return Unsupported("node ", n, " has no option that may be chosen; allow a delegate that can run it");
  }
  ChoiceProblem choice_problem = NodeVariables(problem, choices, [](const AssignOption& option) { return option.seconds; });
  AddCarried(problem, &choice_problem);
  const double unavoidable = AddTransfers(problem, choices, &choice_problem);
  AddLaunches(problem, choices, &choice_problem);
  AddCaps(problem, choices, &choice_problem);
  const ChoiceSolution solution = SolveInTime(choice_problem);
  if (!solution.feasible) return NoPlan(problem, choices, solution);

  for (uint32_t n = 0; n < problem.node_count; ++n) plan.option_of_node.push_back(choices.of(n)[solution.choices[n]]);
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    plan.carried_on.push_back(static_cast<uint16_t>(solution.choices[VariableOfCarried(problem, c)]));
  }
  plan.seconds = SecondsOf(problem, plan.option_of_node, plan.carried_on);
  const double modelled = solution.cost + unavoidable;
  if (!(std::abs(modelled - plan.seconds) <= 1e-9 * plan.seconds)) {
    return InternalError("the plan takes ", plan.seconds, " s but was chosen for ", modelled, " s");
  }
  plan.optimal = solution.optimal;
  plan.lower_bound = plan.optimal ? plan.seconds : std::min(plan.seconds, solution.lower_bound + unavoidable);
  return plan;
}

}  // namespace msrt
