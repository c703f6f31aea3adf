#include "core/parallel/split_plan.h"

#include <algorithm>

#include "core/parallel/overlap.h"
#include "core/parallel/value_cuts.h"

namespace msrt {
namespace {

using OptionalBoxes = std::vector<std::optional<Box>>;  // by rank

Box EmptyBox(int rank) {
  Box box;
  for (int d = 0; d < rank; ++d) box.push_back({0, 0});
  return box;
}

Status CheckNode(const Graph& graph, size_t n, const GraphFacts& facts) {
  const Node& node = graph.nodes[n];
  if (node.def == nullptr || (node.def->effect != Effect::kNone && !IsPure(node)))
    return Unsupported(Describe(graph, n),
                       ": a graph with state, control flow, communication, draws without a step or "
                       "unknown ops is not split; run it on one rank");
  for (ValueId v : node.outputs) {
    if (v != kNoValue && !facts.types[IndexOf(v)].concrete())
      return Unsupported(Describe(graph, n), ": its sizes depend on data; run it on one rank");
  }
  return OkStatus();
}

// Extends a piece whose windows are all in the padding until it reads something: kernels need not
// accept an empty input.
void ReachInputs(const ResolvedSpace& space, Box* piece) {
  for (const TensorMap& input : space.inputs) {
    if (!input.present || input.dropped || !IsPresent(input, *piece)) continue;
    for (const DimMap& map : input.dims) {
      if (map.kind != DimMap::Kind::kWindow && map.kind != DimMap::Kind::kTransposedWindow)
        continue;
      Interval& axis = (*piece)[map.axis];
      const Interval start = axis;
      const int64_t extent = space.axes[map.axis].extent;
      for (int64_t i = 1; map.Touched(axis).empty() && i < extent; ++i) {
        axis.begin = std::max<int64_t>(0, start.begin - i);
        if (map.Touched(axis).empty()) axis.end = std::min(extent, start.end + i);
      }
    }
  }
}

// Walks over the nodes, last first. What consumers on each rank require of a value decides what the
// rank computes of it.
class Planner {
 public:
  Planner(const GraphSpaces& spaces, const SplitOptions& options, const ValueCuts& cuts)
      : spaces_(spaces),
        graph_(spaces.graph()),
        options_(options),
        cuts_(cuts),
        ranks_(static_cast<size_t>(cuts.ranks())),
        required_(graph_.value_count(), OptionalBoxes(ranks_)) {
    plan_.ranks = cuts.ranks();
    plan_.values.resize(graph_.value_count());
    plan_.nodes.resize(graph_.nodes.size(), std::vector<RankPiece>(ranks_));
  }

  Result<SplitPlan> Run() {
    MSRT_RETURN_IF_ERROR(RequireOutputs());
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      MSRT_RETURN_IF_ERROR(CheckNode(graph_, n, spaces_.facts()));
      MSRT_RETURN_IF_ERROR(Visit(n).Within(Describe(graph_, n)));
    }
    for (ValueId v : graph_.inputs) MSRT_RETURN_IF_ERROR(GiveInput(v));
    for (size_t n = 0; n < graph_.nodes.size(); ++n) MSRT_RETURN_IF_ERROR(CutForOverlap(n));
    MSRT_RETURN_IF_ERROR(PlanExchanges());
    return std::move(plan_);
  }

 private:
  bool IsKnown(ValueId v) const { return spaces_.facts().known[IndexOf(v)] != nullptr; }
  const Type& TypeOf(ValueId v) const { return spaces_.facts().types[IndexOf(v)]; }
  double BytesOfElement(ValueId v) const { return BitsOf(TypeOf(v).dtype) / 8.0; }

  void Need(ValueId v, size_t rank, const Box& box) {
    if (v == kNoValue || box.empty()) return;
    std::optional<Box>& required = required_[IndexOf(v)][rank];
    required = required ? Hull(*required, box) : box;
  }

  // Each rank delivers what it owns of an output; all of it if it is not cut.
  Status RequireOutputs() {
    for (ValueId v : graph_.outputs) {
      if (!TypeOf(v).concrete())
        return Unsupported("output '", graph_.value(v).name,
                           "': its size depends on data; run the graph on one rank");
      MSRT_ASSIGN_OR_RETURN(const RankLayout layout, cuts_.LayoutOf(v));
      plan_.outputs.push_back(layout.boxes());
      for (size_t r = 0; r < ranks_; ++r) Need(v, r, layout.boxes()[r]);
    }
    return OkStatus();
  }

  // The boxes of output `v` that ranks would own: nothing that no rank requires.
  Result<OptionalBoxes> Owned(ValueId v) const {
    const OptionalBoxes& required = required_[IndexOf(v)];
    MSRT_ASSIGN_OR_RETURN(const RankLayout layout, cuts_.LayoutOf(v));
    std::optional<Box> needed;
    for (const auto& box : required) {
      if (box) needed = needed ? Hull(*needed, *box) : *box;
    }
    OptionalBoxes owned(ranks_);
    for (size_t r = 0; r < ranks_ && needed; ++r) {
      const Box box = Intersect(layout.boxes()[r], *needed);
      if (!box.empty()) owned[r] = box;
    }
    return owned;
  }

  static bool Covers(const OptionalBoxes& have, const OptionalBoxes& required) {
    for (size_t r = 0; r < have.size(); ++r) {
      if (required[r] && !(have[r] && Contains(*have[r], *required[r]))) return false;
    }
    return true;
  }

  Status Visit(size_t n) {
    const Node& node = graph_.nodes[n];
    std::vector<OptionalBoxes> owned, wanted;  // by output
    bool exchange = false;
    for (ValueId v : node.outputs) {
      OptionalBoxes box(ranks_);
      if (v != kNoValue && !IsKnown(v)) box = required_[IndexOf(v)];
      wanted.push_back(box);
      owned.push_back(box);
      if (v == kNoValue || IsKnown(v) || !cuts_.is_cut(v)) continue;
      MSRT_ASSIGN_OR_RETURN(OptionalBoxes o, Owned(v));
      if (Covers(o, box)) continue;
      owned.back() = std::move(o);
      exchange = true;
    }
    if (exchange) {
      MSRT_ASSIGN_OR_RETURN(exchange, PrefersExchange(n, owned, wanted));
    }
    for (size_t r = 0; r < ranks_; ++r) Compute(n, r, exchange ? owned : wanted);
    return OkStatus();
  }

  // The targets of one rank, from boxes by output and rank.
  static OptionalBoxes Targets(const std::vector<OptionalBoxes>& by_output, size_t rank) {
    OptionalBoxes targets;
    for (const OptionalBoxes& o : by_output) targets.push_back(o[rank]);
    return targets;
  }

  std::span<const int64_t> GranuleOf(size_t n) const {
    if (n >= options_.granules.size()) return {};
    return options_.granules[n];
  }

  // The piece of the node that computes the targets; nullopt: nothing to do.
  std::optional<Box> PieceOf(size_t n, const OptionalBoxes& targets) const {
    const auto wanted = [](const std::optional<Box>& t) { return t.has_value(); };
    if (std::none_of(targets.begin(), targets.end(), wanted)) return std::nullopt;
    const ResolvedSpace* space = spaces_.of_node(n);
    if (space == nullptr) return Box();
    std::optional<Box> piece = PieceFor(*space, targets);
    if (piece && !piece->empty()) {
      ReachInputs(*space, &*piece);
      ExtendToGranule(*space, GranuleOf(n), &*piece);
    }
    return piece;
  }

  void Compute(size_t n, size_t rank, const std::vector<OptionalBoxes>& boxes) {
    const Node& node = graph_.nodes[n];
    const std::optional<Box> piece = PieceOf(n, Targets(boxes, rank));
    if (!piece) return;
    const ResolvedSpace* space = spaces_.of_node(n);
    RankPiece& out = plan_.nodes[n][rank];
    out.pieces = {*piece};
    if (space != nullptr) out.outputs = OutputBoxes(*space, *piece);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ValueId v = node.outputs[o];
      if (space == nullptr)
        out.outputs.push_back(v == kNoValue ? Box() : Box::Whole(TypeOf(v).dims));
      if (v == kNoValue) continue;
      plan_.values[IndexOf(v)].computed.resize(ranks_);
      plan_.values[IndexOf(v)].computed[rank] = out.outputs[o];
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || (space != nullptr && space->inputs[i].dropped)) continue;
      Need(v, rank,
           space == nullptr ? Box::Whole(TypeOf(v).dims) : TouchedBox(space->inputs[i], *piece));
    }
  }

  // The time of an exchange for the rank that sends or receives most.
  Result<double> ExchangeSeconds(ValueId v, const OptionalBoxes& owned,
                                 const OptionalBoxes& required) const {
    const int rank = TypeOf(v).rank();
    std::vector<Box> have;
    std::vector<std::vector<Box>> want(ranks_);
    for (size_t r = 0; r < ranks_; ++r) {
      have.push_back(owned[r] ? *owned[r] : EmptyBox(rank));
      if (required[r]) want[r].push_back(*required[r]);
    }
    MSRT_ASSIGN_OR_RETURN(const std::vector<RankTransfers> plan, PlanRedistribution(have, want));
    double most = 0;
    for (const RankTransfers& t : plan) {
      const auto elements =
          static_cast<double>(std::max(ElementsOf(t.sends), ElementsOf(t.receives)));
      most =
          std::max(most, options_.costs.message_seconds * t.messages_sent() +
                             elements * BytesOfElement(v) / options_.costs.link_bytes_per_second);
    }
    return most;
  }

  // The seconds that one rank more needs to compute `more` of the node instead of `less`, with the
  // larger inputs that take part in an exchange further up.
  double RecomputeSeconds(size_t n, const std::optional<Box>& more,
                          const std::optional<Box>& less) const {
    const ResolvedSpace* space = spaces_.of_node(n);
    if (space == nullptr || !more) return 0;
    const Node& node = graph_.nodes[n];
    const NodeView view(node, spaces_.facts());
    const Cost cost = node.def->cost(view.op());
    const double whole = std::max<double>(1, static_cast<double>(space->axes.Whole().volume()));
    const double extra = static_cast<double>(more->volume() - (less ? less->volume() : 0)) / whole;
    double seconds =
        extra * (cost.flops / options_.costs.flops_per_second +
                 (cost.bytes_read + cost.bytes_written) / options_.costs.memory_bytes_per_second);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || IsKnown(v) || !cuts_.is_cut(v)) continue;
      const int64_t elements = TouchedBox(space->inputs[i], *more).volume() -
                               (less ? TouchedBox(space->inputs[i], *less).volume() : 0);
      seconds += static_cast<double>(std::max<int64_t>(0, elements)) * BytesOfElement(v) /
                 options_.costs.link_bytes_per_second;
    }
    return seconds;
  }

  Result<bool> PrefersExchange(size_t n, const std::vector<OptionalBoxes>& owned,
                               const std::vector<OptionalBoxes>& wanted) const {
    if (options_.halos != HaloRule::kByCost) return options_.halos == HaloRule::kExchange;
    double exchange = 0, recompute = 0;
    for (size_t o = 0; o < owned.size(); ++o) {
      if (owned[o] == wanted[o]) continue;
      MSRT_ASSIGN_OR_RETURN(const double seconds,
                            ExchangeSeconds(graph_.nodes[n].outputs[o], owned[o], wanted[o]));
      exchange += seconds;
    }
    for (size_t r = 0; r < ranks_; ++r)
      recompute = std::max(recompute, RecomputeSeconds(n, PieceOf(n, Targets(wanted, r)),
                                                       PieceOf(n, Targets(owned, r))));
    return exchange <= recompute;
  }

  Status GiveInput(ValueId v) {
    if (!TypeOf(v).concrete())
      return Unsupported("input '", graph_.value(v).name, "' is not a tensor of known size");
    ValuePlan& value = plan_.values[IndexOf(v)];
    if (options_.inputs == InputRule::kWhole) {
      value.computed.assign(ranks_, Box::Whole(TypeOf(v).dims));
      return OkStatus();
    }
    if (options_.inputs == InputRule::kRequired) {
      for (const std::optional<Box>& box : required_[IndexOf(v)])
        value.computed.push_back(box ? *box : EmptyBox(TypeOf(v).rank()));
      return OkStatus();
    }
    MSRT_ASSIGN_OR_RETURN(const RankLayout layout, cuts_.LayoutOf(v));
    value.computed.assign(layout.boxes().begin(), layout.boxes().end());
    return OkStatus();
  }

  // Cuts the piece of a rank that waits for a halo into its interior and the rest.
  Status CutForOverlap(size_t n) {
    const ResolvedSpace* space = spaces_.of_node(n);
    if (space == nullptr || options_.overlap == OverlapRule::kNever) return OkStatus();
    const Node& node = graph_.nodes[n];
    for (size_t r = 0; r < ranks_; ++r) {
      RankPiece& mine = plan_.nodes[n][r];
      if (mine.pieces.empty()) continue;
      std::vector<Box> have;
      double halo_seconds = 0;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        MSRT_ASSIGN_OR_RETURN(const double seconds, HaloSeconds(n, i, r, &have));
        halo_seconds += seconds;
      }
      if (halo_seconds == 0) continue;
      const std::vector<Box> pieces = InteriorAndRest(*space, GranuleOf(n), mine.pieces[0], have);
      const auto reads = [&](Box piece) {
        const Box before = piece;
        ReachInputs(*space, &piece);
        return piece == before;
      };
      if (pieces.size() > 1 && std::all_of(pieces.begin(), pieces.end(), reads) &&
          IsWorthOverlap(n, mine, pieces[0], halo_seconds))
        mine.pieces = pieces;
    }
    return OkStatus();
  }

  // Appends what the rank has of input i, and returns how long it waits for the rest.
  Result<double> HaloSeconds(size_t n, size_t i, size_t rank, std::vector<Box>* have) const {
    const ResolvedSpace& space = *spaces_.of_node(n);
    const ValueId v = graph_.nodes[n].inputs[i];
    if (v == kNoValue || !space.inputs[i].present || space.inputs[i].dropped) {
      have->emplace_back();
      return 0.0;
    }
    const std::vector<std::optional<Box>>& computed = plan_.values[IndexOf(v)].computed;
    if (IsKnown(v) || computed.empty()) {
      have->push_back(Box::Whole(TypeOf(v).dims));
      return 0.0;
    }
    have->push_back(computed[rank] ? *computed[rank] : EmptyBox(TypeOf(v).rank()));
    const Box touched = TouchedBox(space.inputs[i], plan_.nodes[n][rank].pieces[0]);
    if (touched.empty() || Contains(have->back(), touched)) return 0.0;
    return ExchangeSeconds(v, computed, required_[IndexOf(v)]);
  }

  bool IsWorthOverlap(size_t n, const RankPiece& mine, const Box& interior,
                      double halo_seconds) const {
    if (options_.overlap == OverlapRule::kAlways) return true;
    // The parts of the result are joined by a copy.
    const double bytes =
        static_cast<double>(mine.outputs[0].volume()) * BytesOfElement(graph_.nodes[n].outputs[0]);
    return std::min(halo_seconds, RecomputeSeconds(n, interior, std::nullopt)) >
           2 * bytes / options_.costs.memory_bytes_per_second;
  }

  // Collects the boxes that consumers miss, by value and rank, and plans who sends them.
  Status PlanExchanges() {
    std::vector<std::vector<std::vector<Box>>> strips(graph_.value_count());  // for overlap
    std::vector<OptionalBoxes> hulls(graph_.value_count());
    const auto want = [&](ValueId v, size_t r, const Box& box, bool alone) {
      const ValuePlan& value = plan_.values[IndexOf(v)];
      if (box.empty() || (value.computed[r] && Contains(*value.computed[r], box))) return;
      strips[IndexOf(v)].resize(ranks_);
      hulls[IndexOf(v)].resize(ranks_);
      std::optional<Box>& hull = hulls[IndexOf(v)][r];
      std::vector<Box>& list = strips[IndexOf(v)][r];
      if (!alone) hull = hull ? Hull(*hull, box) : box;
      else if (std::find(list.begin(), list.end(), box) == list.end()) list.push_back(box);
    };
    ForEachRead(want);
    for (size_t o = 0; o < graph_.outputs.size(); ++o) {
      const ValueId v = graph_.outputs[o];
      for (size_t r = 0; r < ranks_ && !IsKnown(v); ++r) want(v, r, plan_.outputs[o][r], false);
    }
    for (uint32_t v = 0; v < graph_.value_count(); ++v) {
      if (!hulls[v].empty())
        MSRT_RETURN_IF_ERROR(PlanExchange(ValueId(v), std::move(strips[v]), hulls[v]));
    }
    return OkStatus();
  }

  // Calls visit(value, rank, box, whether it is one of several pieces) for each input of each
  // piece.
  template <typename Visit>
  void ForEachRead(const Visit& visit) const {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const ResolvedSpace* space = spaces_.of_node(n);
      for (size_t r = 0; r < ranks_; ++r) {
        const std::vector<Box>& pieces = plan_.nodes[n][r].pieces;
        for (const Box& piece : pieces) {
          for (size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId v = node.inputs[i];
            if (v == kNoValue || IsKnown(v)) continue;
            if (space != nullptr &&
                (space->inputs[i].dropped || !IsPresent(space->inputs[i], piece)))
              continue;
            visit(
                v, r,
                space == nullptr ? Box::Whole(TypeOf(v).dims) : TouchedBox(space->inputs[i], piece),
                pieces.size() > 1);
          }
        }
      }
    }
  }

  Status PlanExchange(ValueId v, std::vector<std::vector<Box>> strips, const OptionalBoxes& hulls) {
    constexpr size_t kMaxBoxes = 32;  // of one Exchange
    ValuePlan& value = plan_.values[IndexOf(v)];
    std::vector<Box> have;
    for (size_t r = 0; r < ranks_; ++r) {
      have.push_back(value.computed[r] ? *value.computed[r] : EmptyBox(TypeOf(v).rank()));
      std::optional<Box> hull = hulls[r];
      if (strips[r].size() > kMaxBoxes) {
        for (const Box& box : strips[r]) hull = hull ? Hull(*hull, box) : box;
      }
      if (!hull) continue;
      std::erase_if(strips[r], [&](const Box& box) { return Contains(*hull, box); });
      strips[r].push_back(*hull);
    }
    auto transfers = PlanRedistribution(have, strips);
    if (!transfers.ok())
      return std::move(transfers).status().Within(StrCat("value '", graph_.value(v).name, "'"));
    value.exchanged = std::move(strips);
    value.transfers = *std::move(transfers);
    return OkStatus();
  }

  const GraphSpaces& spaces_;
  const Graph& graph_;
  const SplitOptions& options_;
  const ValueCuts& cuts_;
  const size_t ranks_;
  std::vector<OptionalBoxes> required_;  // by value
  SplitPlan plan_;
};

}  // namespace

Result<SplitPlan> PlanSplit(const GraphSpaces& spaces, const SplitOptions& options) {
  MSRT_ASSIGN_OR_RETURN(const ValueCuts cuts, ValueCuts::Make(spaces, options));
  return Planner(spaces, options, cuts).Run();
}

}  // namespace msrt
