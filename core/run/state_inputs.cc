#include "core/run/state_inputs.h"

namespace msrt {

void StateInputs::FindSlots(const Frame& frame) {
  slots_.resize(step_.input_count);
  versions_.resize(step_.input_count);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Location& l = step_.locations[i];
    if (IsOfSlot(l)) slots_[i] = {l.index, l.offset % 2 != 0};
    else if (l.kind == Location::kInput && l.offset == 0)
      slots_[i].slot = frame.inputs[l.index].slot;
    if (slots_[i].slot >= 0)
      versions_[i] = states_.Version(static_cast<size_t>(slots_[i].slot), slots_[i].current);
  }
}

Result<const void*> StateInputs::Get(size_t input, const msrt_packing& packing, size_t bytes,
                                     Pack pack) {
  if (input >= step_.input_count) return InvalidArgument("packed_input: there is no input ", input);
  if (const SlotValue of = slots_.empty() ? SlotValue() : slots_[input]; of.slot >= 0) {
    MSRT_ASSIGN_OR_RETURN(
        std::shared_ptr<const StateForm> form,
        states_.Packed(static_cast<size_t>(of.slot), of.current, packing, bytes, pack));
    const void* const data = form->data.data();
    // On the host, the slot holds the form long enough.
    if (step_.queue == kHostQueue) return data;
    form_bytes_ += bytes;
    forms_.push_back(std::move(form));
    return data;
  }
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<Block> block, budget_.Make(bytes, "a packed form"));
  states_.CountPacking(packing, &PackCount::copies, bytes);
  MSRT_RETURN_IF_ERROR(pack(block->data()));
  packed_copies_ = true;
  form_bytes_ += bytes;
  const void* const data = block->data();
  forms_.push_back(std::move(block));
  return data;
}

}  // namespace msrt
