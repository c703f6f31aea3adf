// How the choice problem of a placement is made and solved in bounded time.
//
// Most graphs reduce and the first answer is proven. Where it is not, it may be far from the best,
// and slower than not to mix delegates at all. Then each delegate is also solved alone, which
// leaves so few choices that it reduces, and the best of these plans is improved with the options
// of one delegate at a time.
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
      next;  // of the node at hand: its neighbour and the option that makes it one
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

// The nodes as variables, with what `cost` says of an option.
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

// Caps that could be passed at all.
void AddCaps(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  for (size_t d = 0; d < problem.device_caps.size(); ++d) {
    if (std::isinf(problem.device_caps[d])) continue;
    std::vector<std::pair<uint32_t, std::vector<double>>> uses;
    double most = 0;
    for (uint32_t n = 0; n < problem.node_count; ++n) {
      std::vector<double> use;
      for (uint32_t o : choices.of(n))
        use.push_back(problem.options[o].nodes.back() == n ? MemoryOn(problem.options[o], d) : 0);
      const double largest = *std::max_element(use.begin(), use.end());
      if (largest == 0) continue;
      most += largest;
      uses.emplace_back(n, std::move(use));
    }
    if (most > problem.device_caps[d]) out->AddCap(problem.device_caps[d], std::move(uses));
  }
}

// Caps that bind are branched on, and each branch solves the whole: this many keep a large graph
// within a fraction of a second and leave a gap of less than 0.1 % there, while small ones are
// solved to the end.
SolveOptions OptionsFor(const ChoiceProblem& problem) {
  SolveOptions options;
  options.max_branches = std::clamp<int64_t>(80000 / std::max(problem.graph().node_count(), 1u), 16,
                                             options.max_branches);
  return options;
}

// A plan this close to the bound is not worth more time.
constexpr double kCloseEnough = 1.001;
// To improve a plan where few choices are open: more time finds little more.
constexpr SolveOptions kToImprove = {
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

// As the model has it; infinite seconds: none was found.
Assignment PlanOf(const AssignProblem& problem, const ListsByNode& choices, const Model& model,
                  const ChoiceSolution& solution) {
  Assignment plan;
  plan.seconds = solution.cost + model.unavoidable;
  plan.lower_bound = solution.lower_bound + model.unavoidable;
  plan.optimal = solution.optimal;
  if (!solution.feasible) return plan;
  for (uint32_t n = 0; n < problem.node_count; ++n)
    plan.option_of_node.push_back(choices.of(n)[solution.choices[n]]);
  for (size_t c = 0; c < problem.carried.size(); ++c) {
    plan.carried_on.push_back(
        static_cast<uint16_t>(solution.choices[VariableOfCarried(problem, c)]));
  }
  return plan;
}

// The plan in terms of the model, nodes and carried pairs.
std::vector<uint32_t> ChoicesOf(const AssignProblem& problem, const ListsByNode& choices,
                                const Assignment& plan) {
  std::vector<uint32_t> start;
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const std::span<const uint32_t> options = choices.of(n);
    start.push_back(static_cast<uint32_t>(
        std::find(options.begin(), options.end(), plan.option_of_node[n]) - options.begin()));
  }
  start.insert(start.end(), plan.carried_on.begin(), plan.carried_on.end());
  return start;
}

// What the options of a plan may differ in, each only within the one before.
enum class Mix { kDelegates, kLayouts, kNothing };

using OptionSet = std::vector<bool>;  // by option

// The options that `belongs` picks, and all that there are for a node of which it picks none.
template <typename Belongs>
OptionSet Only(const AssignProblem& problem, const ListsByNode& choices, const Belongs& belongs) {
  OptionSet kept(problem.options.size());
  for (uint32_t n = 0; n < problem.node_count; ++n) {
    const std::span<const uint32_t> options = choices.of(n);
    const bool none = std::none_of(options.begin(), options.end(),
                                   [&](uint32_t o) { return belongs(problem.options[o]); });
    for (uint32_t o : options) kept[o] = kept[o] || none || belongs(problem.options[o]);
  }
  return kept;
}

ListsByNode Among(const ListsByNode& choices, const OptionSet& kept) {
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

// One set of options for each delegate, or layout, as if it had to do without the others; what the
// runtime does itself is in all of them.
std::vector<OptionSet> Separate(const AssignProblem& problem, const ListsByNode& choices, Mix mix) {
  std::vector<OptionSet> parts;
  const std::vector<uint32_t>& all = choices.numbers;
  const auto add = [&](const auto& belongs) {
    if (std::none_of(all.begin(), all.end(),
                     [&](uint32_t o) { return belongs(problem.options[o]); }))
      return;
    OptionSet part = Only(problem, choices, [&](const AssignOption& o) {
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

// To the best plan of which every node keeps its option or takes one of the part.
void Improve(const AssignProblem& problem, const ListsByNode& choices, OptionSet part,
             Assignment* plan) {
  for (uint32_t o : plan->option_of_node) part[o] = true;
  const ListsByNode among = Among(choices, part);
  const Model model = MakeModel(problem, among);
  Assignment best = PlanOf(problem, among, model,
                           Solve(model.problem, kToImprove, ChoicesOf(problem, among, *plan)));
  if (best.seconds < plan->seconds) *plan = std::move(best);
}

// The fastest plan as far as the time goes, and no slower than the same search finds where less may
// be mixed.
Assignment Search(const AssignProblem& problem, const ListsByNode& choices, Mix mix) {
  const Model model = MakeModel(problem, choices);
  Assignment best =
      PlanOf(problem, choices, model, Solve(model.problem, OptionsFor(model.problem)));
  if (best.optimal || best.lower_bound == kForbidden) return best;
  const double bound = best.lower_bound;
  std::vector<OptionSet> parts;
  while (parts.empty() && mix != Mix::kNothing) {
    parts = Separate(problem, choices, mix);
    mix = mix == Mix::kDelegates ? Mix::kLayouts : Mix::kNothing;
  }
  for (const OptionSet& part : parts) {
    Assignment plan = Search(problem, Among(choices, part), mix);
    if (plan.seconds < best.seconds) best = std::move(plan);
  }
  // Any plan is worth more time than none.
  if (best.seconds == kForbidden) return PlanOf(problem, choices, model, Solve(model.problem));
  if (best.seconds > kCloseEnough * bound) {
    for (const OptionSet& part : parts) Improve(problem, choices, part, &best);
  }
  best.lower_bound = bound;
  best.optimal = false;
  return best;
}

// Why there is no plan, as far as it is known. `proven`: that there is none.
Status NoPlan(const AssignProblem& problem, const ListsByNode& choices, bool proven) {
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
  if (proven) return LimitExceeded("no plan keeps the memory caps; raise one of them");
  return LimitExceeded(
      "no plan was found in time, and none was ruled out; offer each node alone as well",
      capped ? ", raise a memory cap" : "", " or allow fewer delegates");
}

}  // namespace

Result<Assignment> FastestPlan(const AssignProblem& problem, const ListsByNode& choices) {
  Assignment plan = Search(problem, choices, Mix::kDelegates);
  if (plan.seconds == kForbidden) return NoPlan(problem, choices, plan.lower_bound == kForbidden);
  const double modelled = plan.seconds;
  plan.seconds = SecondsOf(problem, plan.option_of_node, plan.carried_on);
  if (!(std::abs(modelled - plan.seconds) <= 1e-9 * plan.seconds)) {
    return InternalError("the plan takes ", plan.seconds, " s but was chosen for ", modelled, " s");
  }
  plan.lower_bound = plan.optimal ? plan.seconds : std::min(plan.seconds, plan.lower_bound);
  return plan;
}

}  // namespace msrt
