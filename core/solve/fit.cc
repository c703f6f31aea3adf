#include "core/solve/fit.h"

#include <algorithm>

namespace msrt {
namespace {

constexpr int kFitPasses = 8, kImprovePasses = 8;

struct Move {
  double price;  // cost per unit of excess that it saves
  uint32_t node, choice;
};

class Fitter {
 public:
  Fitter(const ChoiceGraph& graph, std::span<const double> node_costs,
         std::span<const std::vector<double>> uses, std::vector<uint32_t>* choices)
      : graph_(graph),
        node_costs_(node_costs),
        uses_(uses),
        choices_(*choices),
        incidence_(graph),
        excess_(uses.size(), -1) {
    for (size_t k = 0; k < uses_.size(); ++k) {
      for (uint32_t v = 0; v < graph_.node_count(); ++v) excess_[k] += UseOf(k, v, choices_[v]);
    }
  }

  bool fits() const {
    return std::all_of(excess_.begin(), excess_.end(), [](double excess) { return excess <= 0; });
  }

  // Makes at most one change per node; false if nothing helped.
  bool MakeFit() {
    std::vector<Move> moves;
    for (uint32_t v = 0; v < graph_.node_count(); ++v) {
      if (const Move move = CheapestSaving(v); move.price != kForbidden) moves.push_back(move);
    }
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.price < b.price; });
    bool changed = false;
    for (const Move& move : moves) {
      if (fits()) break;
      // Neighbours that changed meanwhile may have changed the cost of this move.
      if (CheapestSaving(move.node).choice != move.choice) continue;
      Change(move.node, move.choice);
      changed = true;
    }
    return changed;
  }

  // Makes single changes that are cheaper and fit; false if there are none.
  bool Improve() {
    bool changed = false;
    for (uint32_t v = 0; v < graph_.node_count(); ++v) {
      ComputeConditionalCosts(graph_, node_costs_, incidence_, v, choices_, kForbidden, &costs_);
      uint32_t best = choices_[v];
      for (uint32_t x = 0; x < costs_.size(); ++x) {
        if (costs_[x] < costs_[best] && StillFits(v, x)) best = x;
      }
      if (best == choices_[v]) continue;
      Change(v, best);
      changed = true;
    }
    return changed;
  }

 private:
  double UseOf(size_t cap, uint32_t v, uint32_t choice) const {
    return uses_[cap][graph_.first_choice[v] + choice];
  }

  bool StillFits(uint32_t v, uint32_t choice) const {
    for (size_t k = 0; k < uses_.size(); ++k) {
      if (excess_[k] + UseOf(k, v, choice) - UseOf(k, v, choices_[v]) > 0) return false;
    }
    return true;
  }

  void Change(uint32_t v, uint32_t choice) {
    for (size_t k = 0; k < uses_.size(); ++k)
      excess_[k] += UseOf(k, v, choice) - UseOf(k, v, choices_[v]);
    choices_[v] = choice;
  }

  // By how much the choice reduces the excess over the limits; savings below a limit count nothing.
  double Saving(uint32_t v, uint32_t choice) const {
    double saving = 0;
    for (size_t k = 0; k < uses_.size(); ++k) {
      const double after = excess_[k] + UseOf(k, v, choice) - UseOf(k, v, choices_[v]);
      saving += std::max(excess_[k], 0.0) - std::max(after, 0.0);
    }
    return saving;
  }

  Move CheapestSaving(uint32_t v) {
    ComputeConditionalCosts(graph_, node_costs_, incidence_, v, choices_, kForbidden, &costs_);
    Move best{kForbidden, v, choices_[v]};
    for (uint32_t x = 0; x < costs_.size(); ++x) {
      const double saving = Saving(v, x);
      if (!(saving > 0) || costs_[x] == kForbidden) continue;
      const double price = (costs_[x] - costs_[choices_[v]]) / saving;
      if (price < best.price) best.price = price, best.choice = x;
    }
    return best;
  }

  const ChoiceGraph& graph_;
  std::span<const double> node_costs_;
  std::span<const std::vector<double>> uses_;
  std::vector<uint32_t>& choices_;
  Incidence incidence_;
  std::vector<double> excess_, costs_;
};

}  // namespace

std::vector<uint32_t> FitToCaps(const ChoiceGraph& graph, std::span<const double> node_costs,
                                std::span<const std::vector<double>> uses,
                                std::vector<uint32_t> choices, SolveCounts* counts) {
  Fitter fitter(graph, node_costs, uses, &choices);
  const int64_t cells_per_pass =
      static_cast<int64_t>(4 * (graph.node_costs.size() + graph.edges.size()));
  for (int pass = 0; pass < kFitPasses && !fitter.fits(); ++pass) {
    counts->cells += cells_per_pass;
    if (!fitter.MakeFit()) return choices;
  }
  if (!fitter.fits()) return choices;
  for (int pass = 0; pass < kImprovePasses; ++pass) {
    counts->cells += cells_per_pass;
    if (!fitter.Improve()) break;
  }
  return choices;
}

}  // namespace msrt
