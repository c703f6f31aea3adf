// Makes the choice problem of a placement and solves it in bounded time.
//
// Most graphs reduce, and the first solution is proven. If it is not, it may be far from the best,
// and slower than using a single delegate. Then the problem is also solved for each delegate alone,
// which leaves so few choices that it reduces, and the best of these assignments is improved with
// the options of one delegate at a time.
#include <algorithm>
#include <cmath>

#include "core/place/assign_choices.h"

namespace msrt {
namespace {

// The nodes of an option choose it together or not at all: neighbours in its list forbid each other
// to differ. One table for each pair of neighbours, however many options they share: delegates that
// offer runs of nodes share most of them.
void AddGroups(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  std::vector<std::pair<uint32_t, uint32_t>>
      next;  // for the current node: its neighbour and the option that makes it one
  std::vector<uint8_t> is_shared(
      problem.options.size());  // by option: the current node and one neighbour share it
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
      for (end = begin; end < next.size() && next[end].first == neighbour; ++end)
        is_shared[next[end].second] = 1;
      cells.clear();
      for (uint32_t a : choices.of(n)) {
        for (uint32_t b : choices.of(neighbour))
          cells.push_back(a != b && (is_shared[a] || is_shared[b]) ? kForbidden : 0);
      }
      out->AddEdge(n, neighbour, cells);
      for (size_t i = begin; i < end; ++i) is_shared[next[i].second] = 0;
    }
  }
}

// Makes a variable for each node; `cost` returns the cost of an option.
template <typename CostOfOption>
ChoiceProblem NodeVariables(const AssignProblem& problem, const ListsByNode& choices,
                            const CostOfOption& cost) {
  ChoiceProblem out;
  std::vector<double> costs;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    costs.clear();
    for (uint32_t o : choices.of(n))
      costs.push_back(problem.options[o].nodes.back() == n ? cost(problem.options[o]) : 0);
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

double MemoryOn(const AssignOption& option, size_t device) {
  return option.device == device ? option.memory_bytes : 0;
}

// Adds the caps that the options could exceed.
void AddCaps(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  for (size_t d = 0; d < problem.device_caps.size(); ++d) {
    if (std::isinf(problem.device_caps[d])) continue;
    std::vector<std::pair<uint32_t, std::vector<double>>> uses;
    double max_total = 0;
    for (uint32_t n = 0; n < problem.node_count; ++n) {
      std::vector<double> use;
      for (uint32_t o : choices.of(n))
        use.push_back(problem.options[o].nodes.back() == n ? MemoryOn(problem.options[o], d) : 0);
      const double largest = *std::max_element(use.begin(), use.end());
      if (largest == 0) continue;
      max_total += largest;
      uses.emplace_back(n, std::move(use));
    }
    if (max_total > problem.device_caps[d]) out->AddCap(problem.device_caps[d], std::move(uses));
  }
}

// The solver branches on caps that bind, and each branch solves the whole problem. This many
// branches keep a large graph within a fraction of a second with a gap of less than 0.1 %, while
// small ones are solved exactly.
SolveOptions OptionsFor(const ChoiceProblem& problem) {
  SolveOptions options;
  options.max_branches = std::clamp<int64_t>(80000 / std::max(problem.graph().node_count(), 1u), 16,
                                             options.max_branches);
  return options;
}

// An assignment this close to the bound is not worth more time.
constexpr double kCloseEnough = 1.001;
// For improving an assignment where few choices are open: more time finds little more.
constexpr SolveOptions kImproveOptions = {
    .max_table_cells = size_t{1} << 25, .max_branches = 64, .max_search_cells = int64_t{1} << 23};

// The choice problem of some of the options.
struct Model {
  ChoiceProblem problem;
  double unavoidable = 0;  // seconds, whatever is chosen
};

Model MakeModel(const AssignProblem& problem, const ListsByNode& choices) {
  Model model{
      NodeVariables(problem, choices, [](const AssignOption& option) { return option.seconds; })};
  AddCarried(problem, &model.problem);
  model.unavoidable = AddTransfers(problem, choices, &model.problem);
  AddLaunches(problem, choices, &model.problem);
  AddCaps(problem, choices, &model.problem);
  return model;
}

// Converts a solution of the model to an assignment; its seconds are infinite if none was found.
Assignment AssignmentOf(const AssignProblem& problem, const ListsByNode& choices,
                        const Model& model, const ChoiceSolution& solution) {
  Assignment assignment;
  assignment.seconds = solution.cost + model.unavoidable;
  assignment.lower_bound = solution.lower_bound + model.unavoidable;
  assignment.optimal = solution.optimal;
  if (!solution.feasible) return assignment;
  for (uint32_t n = 0; n < problem.node_count; ++n)
    assignment.option_of_node.push_back(choices.of(n)[solution.choices[n]]);
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    assignment.carried_on.push_back(
        static_cast<uint16_t>(solution.choices[VariableOfCarried(problem, c)]));
  }
  return assignment;
}

// Converts an assignment to choices of the model: of nodes, then of carried pairs.
std::vector<uint32_t> ChoicesOf(const AssignProblem& problem, const ListsByNode& choices,
                                const Assignment& assignment) {
  std::vector<uint32_t> start;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const std::span<const uint32_t> options = choices.of(n);
    start.push_back(static_cast<uint32_t>(
        std::find(options.begin(), options.end(), assignment.option_of_node[n]) - options.begin()));
  }
  start.insert(start.end(), assignment.carried_on.begin(), assignment.carried_on.end());
  return start;
}

// The property in which the options of an assignment may differ. Each level restricts the one
// before.
enum class Mix { kDelegates, kLayouts, kNothing };

using OptionSet = std::vector<bool>;  // by option

// Returns the options that `belongs` selects, and all options of a node for which it selects none.
template <typename Belongs>
OptionSet SelectOptions(const AssignProblem& problem, const ListsByNode& choices,
                        const Belongs& belongs) {
  OptionSet kept(problem.options.size());
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const std::span<const uint32_t> options = choices.of(n);
    const bool none = std::none_of(options.begin(), options.end(),
                                   [&](uint32_t o) { return belongs(problem.options[o]); });
    for (uint32_t o : options) kept[o] = kept[o] || none || belongs(problem.options[o]);
  }
  return kept;
}

ListsByNode ChoicesAmong(const ListsByNode& choices, const OptionSet& kept) {
  const auto nodes = static_cast<uint32_t>(choices.first.size() - 1);
  return ListBy(nodes, [&](const auto& emit) {
    for (uint32_t n = 0; n < nodes; ++n) {
      for (uint32_t o : choices.of(n)) {
        if (kept[o]) emit(n, o);
      }
    }
  });
}

bool IsIn(const AssignOption& option, Layout layout) {
  const auto is = [&](const auto& border) { return border.second.layout == layout; };
  return std::all_of(option.inputs.begin(), option.inputs.end(), is) &&
         std::all_of(option.outputs.begin(), option.outputs.end(), is);
}

// Returns one set of options for each delegate, or layout, as if it were the only one. Host work is
// in all of them.
std::vector<OptionSet> SeparateSets(const AssignProblem& problem, const ListsByNode& choices,
                                    Mix mix) {
  std::vector<OptionSet> parts;
  const std::vector<uint32_t>& all = choices.numbers;
  const auto add = [&](const auto& belongs) {
    if (std::none_of(all.begin(), all.end(),
                     [&](uint32_t o) { return belongs(problem.options[o]); }))
      return;
    OptionSet part = SelectOptions(problem, choices, [&](const AssignOption& o) {
      return o.delegate == kHostWork || belongs(o);
    });
    if (std::any_of(all.begin(), all.end(), [&](uint32_t o) { return !part[o]; }))
      parts.push_back(std::move(part));
  };
  for (uint32_t d = 0; mix == Mix::kDelegates && d < problem.launch_seconds.size(); ++d) {
    add([&](const AssignOption& o) { return o.delegate == d; });
  }
  for (uint32_t l = 0; mix == Mix::kLayouts && l < kLayoutCount; ++l) {
    add([&](const AssignOption& o) { return IsIn(o, static_cast<Layout>(l)); });
  }
  return parts;
}

// Improves the assignment: every node keeps its option or takes one of `part`.
void Improve(const AssignProblem& problem, const ListsByNode& choices, OptionSet part,
             Assignment* assignment) {
  for (uint32_t o : assignment->option_of_node) part[o] = true;
  const ListsByNode among = ChoicesAmong(choices, part);
  const Model model = MakeModel(problem, among);
  Assignment best =
      AssignmentOf(problem, among, model,
                   Solve(model.problem, kImproveOptions, ChoicesOf(problem, among, *assignment)));
  if (best.seconds < assignment->seconds) *assignment = std::move(best);
}

// Returns the fastest assignment found in time, and no slower than the same search finds with less
// mixing.
Assignment Search(const AssignProblem& problem, const ListsByNode& choices, Mix mix) {
  const Model model = MakeModel(problem, choices);
  Assignment best =
      AssignmentOf(problem, choices, model, Solve(model.problem, OptionsFor(model.problem)));
  if (best.optimal || best.lower_bound == kForbidden) return best;
  const double bound = best.lower_bound;
  std::vector<OptionSet> parts;
  while (parts.empty() && mix != Mix::kNothing) {
    parts = SeparateSets(problem, choices, mix);
    mix = mix == Mix::kDelegates ? Mix::kLayouts : Mix::kNothing;
  }
  for (const OptionSet& part : parts) {
    Assignment assignment = Search(problem, ChoicesAmong(choices, part), mix);
    if (assignment.seconds < best.seconds) best = std::move(assignment);
  }
  // Any assignment is worth more time than none.
  if (best.seconds == kForbidden)
    return AssignmentOf(problem, choices, model, Solve(model.problem));
  if (best.seconds > kCloseEnough * bound) {
    for (const OptionSet& part : parts) Improve(problem, choices, part, &best);
  }
  best.lower_bound = bound;
  best.optimal = false;
  return best;
}

// Returns why there is no assignment, as far as known. `proven`: none exists.
Status NoAssignmentError(const AssignProblem& problem, const ListsByNode& choices, bool proven) {
  const std::vector<double>& caps = problem.device_caps;
  const bool capped =
      std::any_of(caps.begin(), caps.end(), [](double cap) { return !std::isinf(cap); });
  bool each_fits = true;
  for (size_t d = 0; (proven || capped) && d < caps.size(); ++d) {
    const ChoiceSolution least = Solve(NodeVariables(
        problem, choices, [&](const AssignOption& option) { return MemoryOn(option, d); }));
    if (least.lower_bound == kForbidden)
      return Unsupported("no set of options covers every node once; offer each node alone as well");
    if (least.lower_bound > caps[d]) {
      return LimitExceeded("device ", d, " needs at least ", least.lower_bound,
                           " bytes and its cap is ", caps[d],
                           "; raise the cap or allow a delegate on another device");
    }
    each_fits = each_fits && least.cost <= caps[d];
  }
  if (proven && each_fits) {
    return LimitExceeded(
        "the memory caps can be kept for each device alone but not for all together; raise one of "
        "them");
  }
  if (proven) return LimitExceeded("no placement keeps the memory caps; raise one of them");
  return LimitExceeded(
      "no placement was found in time, and none was ruled out; offer each node alone as well",
      capped ? ", raise a memory cap" : "", " or allow fewer delegates");
}

}  // namespace

Result<Assignment> FastestAssignment(const AssignProblem& problem, const ListsByNode& choices) {
  Assignment assignment = Search(problem, choices, Mix::kDelegates);
  if (assignment.seconds == kForbidden)
    return NoAssignmentError(problem, choices, assignment.lower_bound == kForbidden);
  const double modelled = assignment.seconds;
  assignment.seconds = SecondsOf(problem, assignment.option_of_node, assignment.carried_on);
  if (!(std::abs(modelled - assignment.seconds) <= 1e-9 * assignment.seconds)) {
    return InternalError("the placement takes ", assignment.seconds, " s but was chosen for ",
                         modelled, " s");
  }
  assignment.lower_bound = assignment.optimal
                               ? assignment.seconds
                               : std::min(assignment.seconds, assignment.lower_bound);
  return assignment;
}

}  // namespace msrt
