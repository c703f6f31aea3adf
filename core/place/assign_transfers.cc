// Transfers as pairwise costs. A value made in one state and read by one node costs a table between
// producer and reader. If several nodes with a choice read it, extra variables say in which states
// it is wanted: one variable over the sets of states that can occur, or, if these are many, a
// variable for each state. Carried pairs make their first value and read their last one as nodes
// do.
#include <algorithm>
#include <bit>

#include "core/place/assign_choices.h"

namespace msrt {
namespace {

constexpr uint32_t kNotMade = UINT32_MAX;  // inside of a group, and no node outside reads it
constexpr uint32_t kNoVariable = UINT32_MAX;
constexpr uint32_t kNoPair = UINT32_MAX;
// Up to this many sets, one variable over them is eliminated faster than a variable for each state:
// in half the time for attention layers on four devices, with up to 256 sets.
constexpr size_t kMaxSets = 256;

// The sets of states that a node or a carried pair wants a value in, by its choices.
struct Reader {
  uint32_t variable;
  size_t first_want, want_count;
};

class TransferTables {
 public:
  TransferTables(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out)
      : problem_(problem), choices_(choices), out_(*out), pair_of_(problem.values.size(), kNoPair) {
    for (uint32_t c = 0; c < problem.carried.size(); ++c)
      pair_of_[problem.carried[c].begin] = pair_of_[problem.carried[c].end] = c;
  }

  void Add(uint32_t v) {
    const AssignValue& value = problem_.values[v];
    if (value.readers.empty() && !value.is_output) return;
    CollectMade(v);
    CollectWants(v);
    if (always_ == 0 && readers_.empty()) return;
    const TransferPrices prices(problem_.transfers, value.bytes);
    if (readers_.empty()) {
      AddAlone(prices);
    } else if (readers_.size() == 1) {
      ChargeForSets(readers_[0].variable, WantsOf(readers_[0]), prices);
    } else if (CollectSets()) {
      AddSetVariable(prices);
    } else {
      AddStateVariables(prices);
    }
  }

  double unavoidable() const { return unavoidable_; }

 private:
  std::span<const StateSet> WantsOf(const Reader& r) const {
    return {wants_.data() + r.first_want, r.want_count};
  }

  // Fills made_, by choice of the producer. If the state is always the same, the producer does not
  // matter.
  void CollectMade(uint32_t v) {
    const int32_t producer = problem_.values[v].producer;
    made_.clear();
    if (producer < 0 && pair_of_[v] != kNoPair) {
      producer_ = VariableOfCarried(problem_, pair_of_[v]);
      for (uint16_t d = 0; d < problem_.device_caps.size(); ++d)
        made_.push_back(StateIndex({d, Layout::kPlain}));
    } else if (producer < 0) {
      made_.push_back(StateIndex(problem_.values[v].home));
    } else {
      producer_ = static_cast<uint32_t>(producer);
      for (uint32_t o : choices_.of(producer_)) {
        uint32_t state = kNotMade;
        for (const auto& [value, s] : problem_.options[o].outputs) {
          if (value == v) state = StateIndex(s);
        }
        made_.push_back(state);
      }
    }
    fixed_ = made_[0] != kNotMade &&
             std::all_of(made_.begin(), made_.end(), [&](uint32_t m) { return m == made_[0]; });
    if (fixed_) made_.resize(1);
  }

  // Fills always_ with the states that are wanted whatever is chosen, and readers_ with the nodes
  // whose wants depend on their choice.
  void CollectWants(uint32_t v) {
    const AssignValue& value = problem_.values[v];
    const StateSet there = fixed_ ? StateSet{1} << made_[0] : 0;
    const bool handed_on = value.is_output && pair_of_[v] != kNoPair;
    always_ = (value.is_output && !handed_on ? SetOf(value.home) : 0) & ~there;
    readers_.clear();
    wants_.clear();
    for (uint32_t node : value.readers) {
      const size_t first = wants_.size();
      for (uint32_t o : choices_.of(node)) wants_.push_back(Want(problem_.options[o], v) & ~there);
      AddReader(node, first);
    }
    if (!handed_on) return;
    const size_t first = wants_.size();
    for (uint16_t d = 0; d < problem_.device_caps.size(); ++d)
      wants_.push_back(SetOf({d, Layout::kPlain}) & ~there);
    AddReader(VariableOfCarried(problem_, pair_of_[v]), first);
  }

  // A reader that wants the same states whatever is chosen needs no table.
  void AddReader(uint32_t variable, size_t first) {
    const bool same = std::all_of(wants_.begin() + static_cast<std::ptrdiff_t>(first), wants_.end(),
                                  [&](StateSet w) { return w == wants_[first]; });
    if (same) {
      always_ |= wants_[first];
      wants_.resize(first);
    } else {
      readers_.push_back({variable, first, wants_.size() - first});
    }
  }

  // Several nodes of a group may read the value; they want the same states, which count once.
  static StateSet Want(const AssignOption& option, uint32_t v) {
    StateSet want = 0;
    for (const auto& [value, state] : option.inputs) {
      if (value == v) want |= SetOf(state);
    }
    return want;
  }

  static double Seconds(const TransferPrices& prices, uint32_t made, StateSet wanted) {
    if (made == kNotMade) return wanted == 0 ? 0 : kForbidden;
    return prices.Seconds(StateAt(made), wanted);
  }

  // Adds the cost of each choice of `variable`, by the state that the value was made in.
  template <typename SecondsOfMadeAndChoice>
  void Charge(uint32_t variable, size_t choices, const SecondsOfMadeAndChoice& seconds) {
    cells_.clear();
    for (uint32_t made : made_) {
      for (size_t i = 0; i < choices; ++i) cells_.push_back(seconds(made, i));
    }
    if (fixed_) {
      out_.AddCosts(variable, cells_);
    } else {
      out_.AddEdge(producer_, variable, cells_);
    }
  }
  void ChargeForSets(uint32_t variable, std::span<const StateSet> sets,
                     const TransferPrices& prices) {
    Charge(variable, sets.size(),
           [&](uint32_t made, size_t i) { return Seconds(prices, made, always_ | sets[i]); });
  }

  void AddAlone(const TransferPrices& prices) {
    if (fixed_) {
      unavoidable_ += Seconds(prices, made_[0], always_);
      return;
    }
    cells_.clear();
    for (uint32_t made : made_) cells_.push_back(Seconds(prices, made, always_));
    out_.AddCosts(producer_, cells_);
  }

  // Fills sets_ with the sets of states that may be wanted together; false if there are too many.
  bool CollectSets() {
    sets_.assign(1, always_);
    for (const Reader& reader : readers_) {
      unions_.clear();
      for (StateSet want : WantsOf(reader)) {
        for (StateSet set : sets_) unions_.push_back(set | want);
      }
      std::sort(unions_.begin(), unions_.end());
      unions_.erase(std::unique(unions_.begin(), unions_.end()), unions_.end());
      if (unions_.size() > kMaxSets) return false;
      sets_.swap(unions_);
    }
    return true;
  }

  void AddSetVariable(const TransferPrices& prices) {
    const uint32_t variable = AddVariable(sets_.size());
    ChargeForSets(variable, sets_, prices);
    for (const Reader& reader : readers_) {
      cells_.clear();
      for (StateSet set : sets_) {
        for (StateSet want : WantsOf(reader)) cells_.push_back((want & ~set) == 0 ? 0 : kForbidden);
      }
      out_.AddEdge(variable, reader.variable, cells_);
    }
  }

  // The same costs, split by what causes them: one variable pays for bringing the value to the host
  // as it was made, one for each layout pays for having the host convert it, one for each state of
  // a device pays for the copy there. Each of these variables needs the one before, unless the
  // device reaches the value directly.
  void AddStateVariables(const TransferPrices& prices) {
    StateSet states = always_;
    for (const Reader& reader : readers_) {
      for (StateSet want : WantsOf(reader)) states |= want;
    }
    const uint32_t on_host = AddOnHost(prices);
    std::array<uint32_t, kLayoutCount> in_layout;
    in_layout.fill(kNoVariable);
    std::array<bool, kLayoutCount> seen = {};
    for (StateSet rest = states; rest != 0; rest &= rest - 1) {
      const auto state = static_cast<uint32_t>(std::countr_zero(rest));
      const uint32_t layout = state % kLayoutCount;
      if (!seen[layout]) in_layout[layout] = AddLayout(prices, layout, on_host);
      seen[layout] = true;
      Demand(state, state < kLayoutCount ? in_layout[layout]
                                         : AddDeviceState(prices, state, in_layout[layout]));
    }
  }

  uint32_t AddVariable(size_t choices) {
    cells_.assign(choices, 0);
    return out_.AddNode(cells_);
  }
  // Choice 0: the value is not there; choice 1: it is, at a cost of `seconds(made)`.
  template <typename SecondsOfMade>
  uint32_t AddPresence(const SecondsOfMade& seconds) {
    const uint32_t variable = AddVariable(2);
    Charge(variable, 2, [&](uint32_t made, size_t choice) {
      return choice == 0 || made == kNotMade ? 0 : seconds(made);
    });
    return variable;
  }

  // Returns kNoVariable if the value is on the host anyway.
  uint32_t AddOnHost(const TransferPrices& prices) {
    if (std::all_of(made_.begin(), made_.end(), [](uint32_t made) { return made < kLayoutCount; }))
      return kNoVariable;
    return AddPresence(
        [&](uint32_t made) { return made < kLayoutCount ? 0 : prices.copy_from(StateAt(made)); });
  }

  // Adds the variable for this layout on the host; kNoVariable if the value has it anyway.
  uint32_t AddLayout(const TransferPrices& prices, uint32_t layout, uint32_t on_host) {
    const auto is_made_so = [&](uint32_t made) {
      return made != kNotMade && made % kLayoutCount == layout;
    };
    if (on_host == kNoVariable && std::all_of(made_.begin(), made_.end(), is_made_so))
      return kNoVariable;
    const uint32_t variable = AddPresence([&](uint32_t made) {
      return is_made_so(made) ? 0 : prices.convert(static_cast<Layout>(layout));
    });
    if (on_host != kNoVariable) Needs(variable, on_host);
    return variable;
  }

  // Choice 0: not there, 1: copied there from the host, 2: made there or reached directly.
  uint32_t AddDeviceState(const TransferPrices& prices, uint32_t state, uint32_t layout) {
    const auto is_direct = [&](uint32_t made) {
      return made != kNotMade && prices.IsDirect(StateAt(made), StateAt(state));
    };
    const bool without_host = std::any_of(made_.begin(), made_.end(), [&](uint32_t made) {
      return made == state || is_direct(made);
    });
    cells_.assign(without_host ? 3 : 2, 0);
    cells_[1] = prices.copy_to(StateAt(state));
    const uint32_t variable = out_.AddNode(cells_);
    if (without_host)
      Charge(variable, 3, [&](uint32_t made, size_t choice) {
        if (is_direct(made))
          return choice == 0   ? 0
                 : choice == 1 ? kForbidden
                               : prices.direct(StateAt(made), StateAt(state));
        return choice < 2 || made == state ? 0 : kForbidden;
      });
    if (layout != kNoVariable) Needs(variable, layout);
    return variable;
  }

  size_t ChoicesOf(uint32_t variable) const { return out_.graph().choice_count(variable); }

  // Choice 1 of `variable` needs choice 1 of `needed`, which has two.
  void Needs(uint32_t variable, uint32_t needed) {
    cells_.assign(ChoicesOf(variable) * 2, 0);
    cells_[1 * 2 + 0] = kForbidden;
    out_.AddEdge(variable, needed, cells_);
  }

  // Readers that want the state forbid choice 0 of its variable. Without a variable the value is
  // always in that state.
  void Demand(uint32_t state, uint32_t variable) {
    if (variable == kNoVariable) return;
    const StateSet set = StateSet{1} << state;
    const size_t columns = ChoicesOf(variable);
    if ((always_ & set) != 0) {
      cells_.assign(columns, 0);
      cells_[0] = kForbidden;
      out_.AddCosts(variable, cells_);
      return;
    }
    for (const Reader& reader : readers_) {
      const std::span<const StateSet> wants = WantsOf(reader);
      cells_.assign(wants.size() * columns, 0);
      for (size_t i = 0; i < wants.size(); ++i)
        cells_[i * columns] = (wants[i] & set) != 0 ? kForbidden : 0;
      out_.AddEdge(reader.variable, variable, cells_);
    }
  }

  const AssignProblem& problem_;
  const ListsByNode& choices_;
  ChoiceProblem& out_;
  std::vector<uint32_t> pair_of_;  // by value: the carried pair that it begins or ends
  // The value being added.
  uint32_t producer_ = 0;
  std::vector<uint32_t>
      made_;            // state index by choice of the producer; one entry if all are the same
  bool fixed_ = false;  // all are the same
  StateSet always_ = 0;
  std::vector<Reader> readers_;
  std::vector<StateSet> wants_;
  std::vector<StateSet> sets_, unions_;

  double unavoidable_ = 0;
  std::vector<double> cells_;  // of the table being added
};

}  // namespace

double AddTransfers(const AssignProblem& problem, const ListsByNode& choices, ChoiceProblem* out) {
  TransferTables tables(problem, choices, out);
  for (uint32_t v = 0; v < problem.values.size(); ++v) tables.Add(v);
  return tables.unavoidable();
}

}  // namespace msrt
