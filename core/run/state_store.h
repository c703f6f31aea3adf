// The state slots of a session: the committed values, and the pending ones that the run in progress
// wrote, which become committed only if it succeeds.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/run/budget.h"

namespace msrt {

class StateStore {
 public:
  StateStore(const Module& module, Budget* budget)
      : module_(module),
        budget_(*budget),
        committed_(module.states.size()),
        pending_(committed_.size()),
        written_(committed_.size()) {}

  size_t count() const { return committed_.size(); }
  // Between runs.
  Status Write(size_t slot, const TensorView& data);
  Status Reset(size_t slot);
  TensorView Committed(size_t slot) const { return ViewOf(committed_[slot]); }

  // During a run.
  const Type& CurrentType(size_t slot) const { return Current(slot).type; }
  TensorView CurrentView(size_t slot) const { return ViewOf(Current(slot)); }
  Status WritePending(size_t slot, const TensorView& data);
  // Returns the memory of the pending or the committed value.
  std::byte* Memory(size_t slot, bool pending) const {
    return (pending ? pending_ : committed_)[slot].block.data();
  }
  // Ends a run: commits the pending values if it succeeded, else drops them.
  void Finish(bool succeeded);

  void Trim();
  size_t bytes() const;

 private:
  struct State {
    Type type;
    Block block;
  };
  static TensorView ViewOf(const State& s) {
    return {s.type.dtype, s.type.dims, Layout::kPlain, s.block.data()};
  }
  const State& Current(size_t slot) const { return (written_[slot] ? pending_ : committed_)[slot]; }
  Status Store(State* state, const TensorView& data);

  const Module& module_;
  Budget& budget_;
  std::vector<State> committed_, pending_;
  std::vector<char> written_;
};

}  // namespace msrt
