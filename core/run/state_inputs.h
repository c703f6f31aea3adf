// The fields of msrt_run_args for inputs of a kernel that are state slots: their versions and
// packed forms.
#pragma once

#include "core/bind/binding.h"
#include "core/run/state_store.h"

namespace msrt {

// Lives as long as the call of the kernel.
class StateInputs {
 public:
  StateInputs(StateStore* states, const BoundStep& step) : states_(*states), step_(step) {
    if (step.touches_state) ReadVersions();
  }
  void AddTo(msrt_run_args* args) const;

 private:
  void ReadVersions();
  Result<const void*> Packed(size_t input, const msrt_packing* packing, size_t bytes,
                             FunctionRef<Status(std::byte*)> pack) const;

  StateStore& states_;
  const BoundStep& step_;
  std::vector<uint64_t> versions_;  // by input; empty: none is a slot
};

}  // namespace msrt
