#include "core/place/place.h"

#include <algorithm>
#include <limits>

#include "core/base/clock.h"

namespace msrt {
namespace {

// What a change of layout costs: it reads and writes every byte once.
constexpr double kConvertBytesPerSecond = 8e9, kConvertSeconds = 3e-6;

bool RunByHost(const Node& node) { return node.def != nullptr && ((node.def->traits & kView) != 0 || node.def->effect == Effect::kState); }

struct Option {
  int32_t delegate = -1;
  Candidate candidate;
};

// Minimises the sum of kernel times and layout changes over one option for each node.
class LayoutChoice {
 public:
  LayoutChoice(const Graph& graph, const PlacedGraph& view, const std::vector<std::vector<Option>>& options)
      : graph_(graph), options_(options), producer_(graph.Producers()), chosen_(options.size(), 0), users_(graph.value_count()) {
    convert_seconds_.resize(graph.value_count());
    for (uint32_t v = 0; v < graph.value_count(); ++v) {
      const Type& t = view.typical().types[v];
      const double bytes = t.concrete() ? static_cast<double>(t.bytes()) : 0;
      convert_seconds_[v] = kConvertSeconds + 2 * bytes / kConvertBytesPerSecond;
    }
    output_position_.resize(graph.value_count(), 0);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != kNoValue) users_[IndexOf(node.inputs[i])].push_back({n, i});
      }
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] != kNoValue) output_position_[IndexOf(node.outputs[i])] = i;
      }
    }
    is_output_.resize(graph.value_count());
    for (ValueId v : graph.outputs) is_output_[IndexOf(v)] = true;
  }

  // Improves one node at a time until nothing changes, from several starting points: every node at its own best, and every
  // node at its best in one common layout.
  std::vector<size_t> Solve() {
    std::vector<size_t> best;
    double best_seconds = std::numeric_limits<double>::infinity();
    for (int start = -1; start <= static_cast<int>(Layout::kBlocked8); ++start) {
      Start(start);
      for (int sweep = 0; sweep < 16 && Sweep(); ++sweep) {
      }
      const double seconds = Total();
      if (seconds < best_seconds) {
        best_seconds = seconds;
        best = chosen_;
      }
    }
    return best;
  }

 private:
  struct User {
    size_t node, input;
  };

  void Start(int layout) {
    for (size_t n = 0; n < options_.size(); ++n) {
      double least = std::numeric_limits<double>::infinity();
      for (size_t o = 0; o < options_[n].size(); ++o) {
        const Candidate& c = options_[n][o].candidate;
        const bool fits = layout < 0 || (!c.output_layouts.empty() && static_cast<int>(c.output_layouts[0]) == layout);
        const double seconds = c.seconds + (fits ? 0 : 1);
        if (seconds < least) {
          least = seconds;
          chosen_[n] = o;
        }
      }
    }
  }

  Layout InputLayout(size_t node, size_t option, size_t input) const {
    if (options_[node].empty()) return Layout::kPlain;
    const auto& layouts = options_[node][option].candidate.input_layouts;
    return input < layouts.size() ? layouts[input] : Layout::kPlain;
  }
  Layout OutputLayout(size_t node, size_t option, size_t output) const {
    if (options_[node].empty()) return Layout::kPlain;
    const auto& layouts = options_[node][option].candidate.output_layouts;
    return output < layouts.size() ? layouts[output] : Layout::kPlain;
  }
  Layout ValueLayout(ValueId v) const {
    const int32_t p = producer_[IndexOf(v)];
    return p < 0 ? Layout::kPlain : OutputLayout(static_cast<size_t>(p), chosen_[static_cast<size_t>(p)], output_position_[IndexOf(v)]);
  }

  // Kernel time plus the layout changes on all edges that touch the node.
  double Local(size_t n, size_t option) const {
    double seconds = options_[n].empty() ? 0 : options_[n][option].candidate.seconds;
    const Node& node = graph_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || graph_.value(v).constant != nullptr) continue;
      if (ValueLayout(v) != InputLayout(n, option, i)) seconds += convert_seconds_[IndexOf(v)];
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (v == kNoValue) continue;
      const Layout layout = OutputLayout(n, option, o);
      for (const User& u : users_[IndexOf(v)]) {
        if (layout != InputLayout(u.node, chosen_[u.node], u.input)) seconds += convert_seconds_[IndexOf(v)];
      }
      if (is_output_[IndexOf(v)] && layout != Layout::kPlain) seconds += convert_seconds_[IndexOf(v)];
    }
    return seconds;
  }

  bool Sweep() {
    bool changed = false;
    for (size_t n = 0; n < options_.size(); ++n) {
      double least = std::numeric_limits<double>::infinity();
      size_t best = chosen_[n];
      for (size_t o = 0; o < options_[n].size(); ++o) {
        const double seconds = Local(n, o);
        if (seconds < least) {
          least = seconds;
          best = o;
        }
      }
      changed |= best != chosen_[n];
      chosen_[n] = best;
    }
    return changed;
  }

  double Total() const {
    double seconds = 0;
    for (size_t n = 0; n < options_.size(); ++n) {
      if (options_[n].empty()) continue;
      seconds += options_[n][chosen_[n]].candidate.seconds;
      const Node& node = graph_.nodes[n];
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = node.inputs[i];
        if (v == kNoValue || graph_.value(v).constant != nullptr) continue;
        if (ValueLayout(v) != InputLayout(n, chosen_[n], i)) seconds += convert_seconds_[IndexOf(v)];
      }
    }
    return seconds;
  }

  const Graph& graph_;
  const std::vector<std::vector<Option>>& options_;
  std::vector<int32_t> producer_;
  std::vector<size_t> chosen_;
  std::vector<std::vector<User>> users_;
  std::vector<double> convert_seconds_;
  std::vector<size_t> output_position_;
  std::vector<bool> is_output_;
};

bool Allowed(const PlaceOptions& options, std::string_view delegate) {
  return options.delegates.empty() || std::find(options.delegates.begin(), options.delegates.end(), delegate) != options.delegates.end();
}

Status CheckDelegateNames(const PlaceOptions& options, std::span<const Delegate* const> delegates) {
  for (const std::string& name : options.delegates) {
    if (std::any_of(delegates.begin(), delegates.end(), [&](const Delegate* d) { return d->name() == name; })) continue;
    std::string known;
    for (const Delegate* d : delegates) StrAppend(&known, known.empty() ? "" : ", ", d->name());
    return NotFound("there is no delegate '", name, "'; this runtime has ", known);
  }
  return OkStatus();
}

Status NobodyTakes(const Graph& graph, size_t n, const NodeExplanation& why) {
  std::string reasons;
  for (const auto& [delegate, reason] : why.others) StrAppend(&reasons, reasons.empty() ? "" : "; ", delegate, ": ", reason);
  std::string shapes;
  for (ValueId v : graph.nodes[n].inputs) {
    if (v != kNoValue) StrAppend(&shapes, shapes.empty() ? "" : ", ", graph.value(v).type);
  }
  return Unsupported(Describe(graph, n), " on (", shapes, "): no delegate can run it (", reasons.empty() ? "none is allowed" : reasons,
                     "); register a kernel for it or allow another delegate")
      .With("node", graph.nodes[n].name)
      .With("op", OpName(graph.nodes[n]))
      .With("shapes", shapes);
}

}  // namespace

Result<Placement> Place(const Graph& graph, const PlacedGraph& view, std::span<const Delegate* const> delegates,
                        const PlaceOptions& options, std::span<const std::pair<uint32_t, uint32_t>> banned) {
  MSRT_RETURN_IF_ERROR(CheckDelegateNames(options, delegates));
  const size_t count = graph.nodes.size();
  Placement placement;
  placement.choices.resize(count);
  placement.explanations.resize(count);
  std::vector<std::vector<Option>> nodes(count);
  for (uint32_t d = 0; d < delegates.size(); ++d) {
    if (!Allowed(options, delegates[d]->name())) continue;
    QueryResult answer;
    delegates[d]->Query(view, &answer);
    for (Refusal& r : answer.refusals) {
      if (r.node < count && !RunByHost(graph.nodes[r.node])) {
        placement.explanations[r.node].others.emplace_back(delegates[d]->name(), std::move(r.reason));
      }
    }
    for (Candidate& c : answer.candidates) {
      if (c.nodes.size() != 1 || c.nodes[0] >= count || RunByHost(graph.nodes[c.nodes[0]])) continue;
      const uint32_t n = c.nodes[0];
      if (!(c.seconds >= 0 && c.seconds < std::numeric_limits<double>::infinity())) {
        placement.explanations[n].others.emplace_back(delegates[d]->name(), StrCat(c.algorithm, ": its estimate is ", c.seconds, " s"));
      } else if (options.exact && !c.exact) {
        placement.explanations[n].others.emplace_back(delegates[d]->name(), StrCat(c.algorithm, ": its bits depend on the piece"));
      } else if (std::find(banned.begin(), banned.end(), std::pair{d, n}) != banned.end()) {
        placement.explanations[n].others.emplace_back(delegates[d]->name(), "failed to compile");
      } else {
        nodes[n].push_back({static_cast<int32_t>(d), std::move(c)});
      }
    }
  }
  for (size_t n = 0; n < count; ++n) {
    if (nodes[n].empty() && !RunByHost(graph.nodes[n])) return NobodyTakes(graph, n, placement.explanations[n]);
  }
  const std::vector<size_t> chosen = LayoutChoice(graph, view, nodes).Solve();
  for (size_t n = 0; n < count; ++n) {
    if (nodes[n].empty()) continue;
    NodeExplanation& why = placement.explanations[n];
    for (size_t o = 0; o < nodes[n].size(); ++o) {
      const Option& option = nodes[n][o];
      if (o == chosen[n]) continue;
      why.others.emplace_back(delegates[static_cast<size_t>(option.delegate)]->name(),
                              StrCat(option.candidate.algorithm, ": ", option.candidate.seconds * 1e6, " us"));
    }
    Option& option = nodes[n][chosen[n]];
    why.delegate = delegates[static_cast<size_t>(option.delegate)]->name();
    why.algorithm = option.candidate.algorithm;
    why.seconds = option.candidate.seconds;
    placement.choices[n] = {option.delegate, std::move(option.candidate)};
  }
  return placement;
}

}  // namespace msrt
