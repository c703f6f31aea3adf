// The inputs of a kernel that are state slots: their versions and packed forms.
#pragma once

#include "core/run/frame.h"
#include "core/run/packed_inputs.h"
#include "core/run/state_store.h"

namespace msrt {

// A form belongs to the version of a slot and is kept with it, or to this object if the input is
// not a slot: a copy of a value that has been overwritten since.
class StateInputs final : public PackedInputs {
 public:
  // Reads the versions: no slot among the inputs may change before the kernel has read it.
  StateInputs(StateStore* states, Budget* budget, const Frame& frame, const BoundStep& step)
      : states_(*states), budget_(*budget), step_(step) {
    if (step.touches_state || frame.passes_slots) FindSlots(frame);
  }
  void AddTo(msrt_run_args* args) {
    PackedInputs::AddTo(args);
    args->input_versions = versions_.empty() ? nullptr : versions_.data();
  }

  // A form was not kept with a slot: work that uses it must not be repeated for other values.
  bool packed_copies() const { return packed_copies_; }
  // The forms that enqueued work uses.
  std::vector<std::shared_ptr<const void>> TakeForms() { return std::move(forms_); }
  size_t form_bytes() const { return form_bytes_; }

 private:
  struct SlotValue {
    int64_t slot = -1;  // -1: none
    bool current = true;
  };
  void FindSlots(const Frame& frame);
  Result<const void*> Get(size_t input, const msrt_packing& packing, size_t bytes,
                          Pack pack) override;

  StateStore& states_;
  Budget& budget_;
  const BoundStep& step_;
  std::vector<SlotValue> slots_;    // by input; empty: none is a slot
  std::vector<uint64_t> versions_;  // the same
  std::vector<std::shared_ptr<const void>> forms_;
  size_t form_bytes_ = 0;
  bool packed_copies_ = false;
};

}  // namespace msrt
