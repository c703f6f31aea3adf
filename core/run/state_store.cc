#include "core/run/state_store.h"

#include <cstring>

namespace msrt {

Status StateStore::Write(size_t slot, const TensorView& data) {
  const StateSlot& declared = module_.states[slot];
  auto merged = MergeTypes(Type::Tensor(data.dtype, data.dims), declared.type);
  if (!merged.ok())
    return InvalidArgument("state '", declared.name, "': ", merged.status().message());
  // Writes in place if there is room, which cannot fail; otherwise beside the old value, which
  // stays if there is no memory for both.
  if (committed_[slot].block.data() != nullptr &&
      committed_[slot].block.bytes() >= BytesOf(data.dtype, data.elements())) {
    return Store(&committed_[slot], data);
  }
  MSRT_RETURN_IF_ERROR(Store(&pending_[slot], data));
  std::swap(committed_[slot], pending_[slot]);
  budget_.Release(&pending_[slot].block);
  return OkStatus();
}

Status StateStore::Reset(size_t slot) {
  const ConstTensor& initial = module_.states[slot].initial;
  return Write(slot, {initial.dtype, initial.dims, Layout::kPlain,
                      const_cast<std::byte*>(initial.bytes.data())});
}

Status StateStore::WritePending(size_t slot, const TensorView& data) {
  // The readers of the slot were compiled for its declared type; the type that is written may be
  // known only in this run.
  const StateSlot& declared = module_.states[slot];
  if (!(declared.type.dtype == data.dtype && declared.type.dims == data.dims)) {
    auto merged = MergeTypes(declared.type, Type::Tensor(data.dtype, data.dims));
    if (!merged.ok()) {
      return InvalidArgument("state '", declared.name, "' is ", declared.type,
                             ", what is written to it ", data.dtype, data.dims, ": ",
                             merged.status().message());
    }
  }
  MSRT_RETURN_IF_ERROR(Store(&pending_[slot], data));
  written_[slot] = true;
  return OkStatus();
}

Status StateStore::Store(State* state, const TensorView& data) {
  const Type type = Type::Tensor(data.dtype, data.dims);
  MSRT_RETURN_IF_ERROR(budget_.Ensure(&state->block, type.bytes(), "state"));
  if (type.bytes() != 0) std::memmove(state->block.data(), data.data, type.bytes());
  state->type = type;
  return OkStatus();
}

void StateStore::Finish(bool succeeded) {
  for (size_t s = 0; s < committed_.size(); ++s) {
    if (written_[s] && succeeded) std::swap(committed_[s], pending_[s]);
    written_[s] = false;
  }
}

void StateStore::Trim() {
  for (State& p : pending_) budget_.Release(&p.block);
}

size_t StateStore::bytes() const {
  size_t bytes = 0;
  for (const State& s : committed_) bytes += s.block.bytes();
  for (const State& s : pending_) bytes += s.block.bytes();
  return bytes;
}

}  // namespace msrt
