// Transfers as pairwise costs. A value made in one state and read by one node costs a table between producer and reader. Where several
// nodes with a choice read it, variables of its own say in which states it is wanted: one variable over the sets that may come about,
// or, where these are many, a variable for each state.
#include <algorithm>
#include <bit>

#include "core/place/assign_model.h"
#include "core/solve/choice.h"

namespace msrt {
namespace {

constexpr uint32_t kNotMade = UINT32_MAX;  // inside of a group, and nobody outside reads it
constexpr uint32_t kNoVariable = UINT32_MAX;
// More sets than this, and a variable for each state makes smaller tables.
constexpr size_t kMaxSets = 64;

// The sets of states that a node wants a value in, by its choices.
struct Reader {
  uint32_t node;
  size_t first_want;
};

class TransferTables {
 public:
  TransferTables(const AssignProblem& problem, const NodeChoices& choices, AssignModel* model)
      : problem_(problem), choices_(choices), model_(*model) {}

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
      AddPair(prices);
    } else if (fixed_ || !CollectSets()) {
      AddStateVariables(prices);
    } else {
      AddSetVariable(prices);
    }
  }

 private:
  std::span<const StateSet> WantsOf(const Reader& r) const { return {wants_.data() + r.first_want, choices_.of(r.node).size()}; }

  // Fills made_, by choice of the producer; where it is always the same state the producer plays no part.
  void CollectMade(uint32_t v) {
    const int32_t producer = problem_.values[v].producer;
    made_.clear();
    if (producer < 0) {
      made_.push_back(StateIndex(kHostPlain));
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
    fixed_ = made_[0] != kNotMade && std::all_of(made_.begin(), made_.end(), [&](uint32_t m) { return m == made_[0]; });
  }

  // Fills always_ with the states that are wanted whatever is chosen, and readers_ with the nodes where it depends.
  void CollectWants(uint32_t v) {
    const AssignValue& value = problem_.values[v];
    const StateSet there = fixed_ ? StateSet{1} << made_[0] : 0;
    always_ = (value.is_output ? SetOf(kHostPlain) : 0) & ~there;
    readers_.clear();
    wants_.clear();
    for (uint32_t node : value.readers) {
      const size_t first = wants_.size();
      for (uint32_t o : choices_.of(node)) wants_.push_back(Want(problem_.options[o], v, node) & ~there);
      const bool same =
          std::all_of(wants_.begin() + static_cast<std::ptrdiff_t>(first), wants_.end(), [&](StateSet w) { return w == wants_[first]; });
      if (same) {
        always_ |= wants_[first];
        wants_.resize(first);
      } else {
        readers_.push_back({node, first});
      }
    }
  }

  // What a group wants is charged to the first of its nodes that reads the value.
  StateSet Want(const AssignOption& option, uint32_t v, uint32_t node) const {
    if (option.nodes.size() > 1) {
      const std::vector<uint32_t>& readers = problem_.values[v].readers;
      for (uint32_t member : option.nodes) {
        if (member == node) break;
        if (std::binary_search(readers.begin(), readers.end(), member)) return 0;
      }
    }
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

  void AddAlone(const TransferPrices& prices) {
    if (fixed_) {
      model_.AddConstant(Seconds(prices, made_[0], always_));
      return;
    }
    std::span<double> costs = model_.costs(producer_);
    for (size_t i = 0; i < made_.size(); ++i) costs[i] += Seconds(prices, made_[i], always_);
  }

  void AddPair(const TransferPrices& prices) {
    const std::span<const StateSet> wants = WantsOf(readers_[0]);
    if (fixed_) {
      std::span<double> costs = model_.costs(readers_[0].node);
      for (size_t j = 0; j < wants.size(); ++j) costs[j] += Seconds(prices, made_[0], always_ | wants[j]);
      return;
    }
    FillSeconds(prices, wants, model_.AddTable(producer_, readers_[0].node));
  }

  // A row for each choice of the producer, a column for each of `wants`.
  void FillSeconds(const TransferPrices& prices, std::span<const StateSet> wants, std::span<double> cells) {
    for (size_t i = 0; i < made_.size(); ++i) {
      for (size_t j = 0; j < wants.size(); ++j) cells[i * wants.size() + j] = Seconds(prices, made_[i], always_ | wants[j]);
    }
  }

  // The sets that may be wanted together, or false if they are too many.
  bool CollectSets() {
    sets_.assign(1, always_);
    for (const Reader& reader : readers_) {
      unions_.clear();
      for (StateSet want : WantsOf(reader)) {
        for (StateSet set : sets_) {
          if (std::find(unions_.begin(), unions_.end(), set | want) == unions_.end()) unions_.push_back(set | want);
        }
        if (unions_.size() > kMaxSets) return false;
      }
      sets_.swap(unions_);
    }
    return true;
  }

  void AddSetVariable(const TransferPrices& prices) {
    const uint32_t variable = model_.AddVariable(static_cast<uint32_t>(sets_.size()));
    FillSeconds(prices, sets_, model_.AddTable(producer_, variable));
    for (const Reader& reader : readers_) {
      const std::span<const StateSet> wants = WantsOf(reader);
      std::span<double> cells = model_.AddTable(variable, reader.node);
      for (size_t i = 0; i < sets_.size(); ++i) {
        for (size_t j = 0; j < wants.size(); ++j) cells[i * wants.size() + j] = (wants[j] & ~sets_[i]) == 0 ? 0 : kForbidden;
      }
    }
  }

  // The same costs, split by what causes them: `on_host` pays for bringing the value to the host as it was made, a variable for each
  // layout pays for having the host convert it, one for each state of a device pays for the copy there. Each needs the one before.
  void AddStateVariables(const TransferPrices& prices) {
    StateSet states = always_;
    for (const Reader& reader : readers_) {
      for (StateSet want : WantsOf(reader)) states |= want;
    }
    const uint32_t on_host = AddOnHost(prices);
    std::array<uint32_t, kLayoutCount> converted;
    for (uint32_t l = 0; l < kLayoutCount; ++l) converted[l] = AddLayout(prices, states, l, on_host);
    for (StateSet rest = states; rest != 0; rest &= rest - 1) {
      const auto state = static_cast<uint32_t>(std::countr_zero(rest));
      const uint32_t layout = converted[state % kLayoutCount];
      Demand(state, state < kLayoutCount ? layout : AddDeviceState(prices, state, layout));
    }
  }

  // 0: it is not needed on the host, 1: it is there. No variable where it is there anyway.
  uint32_t AddOnHost(const TransferPrices& prices) {
    if (std::all_of(made_.begin(), made_.end(), [](uint32_t m) { return m < kLayoutCount; })) return kNoVariable;
    const uint32_t variable = model_.AddVariable(2);
    ChargeByMade(variable, [&](uint32_t made) { return made < kLayoutCount || made == kNotMade ? 0 : prices.copy_from(StateAt(made)); });
    return variable;
  }

  uint32_t AddLayout(const TransferPrices& prices, StateSet states, uint32_t layout, uint32_t on_host) {
    StateSet uses = 0;
    for (uint32_t s = layout; s < kMaxStates; s += kLayoutCount) uses |= StateSet{1} << s;
    if ((states & uses) == 0) return kNoVariable;
    const auto as_made = [&](uint32_t made) { return made != kNotMade && made % kLayoutCount == layout; };
    if (on_host == kNoVariable && std::all_of(made_.begin(), made_.end(), as_made)) return kNoVariable;
    const uint32_t variable = model_.AddVariable(2);
    ChargeByMade(variable,
                 [&](uint32_t made) { return as_made(made) || made == kNotMade ? 0 : prices.convert(static_cast<Layout>(layout)); });
    if (on_host != kNoVariable) Needs(variable, on_host);
    return variable;
  }

  // 0: not there, 1: copied there, 2: made there.
  uint32_t AddDeviceState(const TransferPrices& prices, uint32_t state, uint32_t layout) {
    const bool made_there = std::find(made_.begin(), made_.end(), state) != made_.end();
    const uint32_t variable = model_.AddVariable(made_there ? 3 : 2);
    model_.costs(variable)[1] = prices.copy_to(StateAt(state));
    if (made_there) {
      std::span<double> cells = model_.AddTable(producer_, variable);
      for (size_t i = 0; i < made_.size(); ++i) cells[i * 3 + 2] = made_[i] == state ? 0 : kForbidden;
    }
    if (layout != kNoVariable) Needs(variable, layout);
    return variable;
  }

  // Choice 1 of a variable costs what `seconds` says of the state that the value was made in.
  template <typename SecondsOfMade>
  void ChargeByMade(uint32_t variable, const SecondsOfMade& seconds) {
    if (fixed_) {
      model_.costs(variable)[1] = seconds(made_[0]);
      return;
    }
    std::span<double> cells = model_.AddTable(producer_, variable);
    for (size_t i = 0; i < made_.size(); ++i) cells[i * 2 + 1] = seconds(made_[i]);
  }

  // Choice 1 of `variable` needs choice 1 of `needed`.
  void Needs(uint32_t variable, uint32_t needed) { model_.AddTable(variable, needed)[2] = kForbidden; }

  // Whoever wants the state needs it to be there. Without a variable it always is.
  void Demand(uint32_t state, uint32_t variable) {
    if (variable == kNoVariable) return;
    const StateSet set = StateSet{1} << state;
    if ((always_ & set) != 0) {
      model_.costs(variable)[0] = kForbidden;
      return;
    }
    const uint32_t columns = model_.choice_count(variable);
    for (const Reader& reader : readers_) {
      const std::span<const StateSet> wants = WantsOf(reader);
      if (std::none_of(wants.begin(), wants.end(), [&](StateSet w) { return (w & set) != 0; })) continue;
      std::span<double> cells = model_.AddTable(reader.node, variable);
      for (size_t j = 0; j < wants.size(); ++j) cells[j * columns] = (wants[j] & set) != 0 ? kForbidden : 0;
    }
  }

  const AssignProblem& problem_;
  const NodeChoices& choices_;
  AssignModel& model_;
  // Of the value at hand.
  uint32_t producer_ = 0;
  std::vector<uint32_t> made_;  // state index by choice of the producer; one entry where there is none
  bool fixed_ = false;          // the same state whatever is chosen
  StateSet always_ = 0;
  std::vector<Reader> readers_;
  std::vector<StateSet> wants_;
  std::vector<StateSet> sets_, unions_;
};

}  // namespace

void AddTransfers(const AssignProblem& problem, const NodeChoices& choices, AssignModel* model) {
  TransferTables tables(problem, choices, model);
  for (uint32_t v = 0; v < problem.values.size(); ++v) tables.Add(v);
}

}  // namespace msrt
