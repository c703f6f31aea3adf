#include "core/run/state_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace msrt {
namespace {

// The version of initial data, the same in all sessions of a model.
constexpr uint64_t kInitialVersion = 1;

uint64_t NextVersion() {
  static std::atomic<uint64_t> last{kInitialVersion};
  return ++last;
}

bool SameType(const Type& a, const Type& b) { return a.dtype == b.dtype && a.dims == b.dims; }

}  // namespace

StateStore::StateStore(const CompiledModel& model, const Budget& budget,
                       std::shared_ptr<SharedState> shared)
    : model_(model),
      own_(budget, model.module.states.size()),
      shared_(std::move(shared)),
      made_shared_(shared_ == nullptr) {
  for (const StateSlot& slot : model.module.states) roles_.push_back(slot.role);
  written_.reserve(roles_.size());  // adding to it must not fail
  if (made_shared_) shared_ = std::make_shared<SharedState>(budget, roles_.size());
  for (size_t s = 0; s < roles_.size(); ++s) {
    if (made_shared_ || !IsShareable(roles_[s])) SetInitial(s);
  }
}

void StateStore::SetInitial(size_t slot) {
  const ConstTensor& initial = model_.module.states[slot].initial;
  StateGroup& group = GroupOf(slot);
  StateValue& value = group.slots[slot].committed;
  const Type type = initial.type();
  if (!SameType(value.type, type)) ++group.type_changes;
  group.budget.Release(&value.block);
  value.type = type;
  value.data = initial.bytes.data();
  Renew(&value, kInitialVersion);
  retired_.clear();  // no run is in progress
}

void StateStore::Renew(StateValue* value, uint64_t version) {
  value->version = version;
  value->forms.clear();
  retired_.insert(retired_.end(), value->copies.begin(), value->copies.end());
  value->copies.clear();
}

void StateStore::ClearMixed(size_t slot) {
  StateGroup& group = GroupOf(slot);
  if (group.slots[slot].mixed) --group.mixed_count;
  group.slots[slot].mixed = false;
}

Status StateStore::Write(size_t slot, const TensorView& data) {
  const StateSlot& declared = model_.module.states[slot];
  auto merged = MergeTypes(Type::Tensor(data.dtype, data.dims), declared.type);
  if (!merged.ok())
    return InvalidArgument("state '", declared.name, "': ", merged.status().message());
  MSRT_RETURN_IF_ERROR(StoreBeside(slot, data));
  retired_.clear();  // no run is in progress
  ClearMixed(slot);
  return OkStatus();
}

void StateStore::Reset(size_t slot) {
  SetInitial(slot);
  ClearMixed(slot);
}

Status StateStore::CopyFrom(const StateStore& other) {
  for (size_t s = 0; s < count(); ++s) {
    const StateGroup::Slot& from = other.At(s);
    if (&from == &At(s)) continue;  // shared
    if (from.committed.version == kInitialVersion) {
      Reset(s);
    } else {
      MSRT_RETURN_IF_ERROR(Write(s, other.Committed(s)));
      At(s).committed.version = from.committed.version;
    }
    if (!from.mixed) continue;
    At(s).mixed = true;
    ++GroupOf(s).mixed_count;
  }
  return OkStatus();
}

Status StateStore::CheckNotMixed() const {
  if (shared_->mixed_count == 0) return OkStatus();
  const auto mixed = std::find_if(shared_->slots.begin(), shared_->slots.end(),
                                  [](const StateGroup::Slot& s) { return s.mixed; });
  const size_t slot = static_cast<size_t>(mixed - shared_->slots.begin());
  return InvalidArgument("a failed run may have updated some parameters and not others; write or ",
                         "reset '", model_.module.states[slot].name, "' and ",
                         shared_->mixed_count - 1, " more states before the next run");
}

Status StateStore::BeginUpdate(size_t slot) {
  StateGroup& group = GroupOf(slot);
  StateValue& value = group.slots[slot].committed;
  if (value.block.data() == nullptr) {
    const size_t bytes = value.type.bytes();
    MSRT_RETURN_IF_ERROR(group.budget.Ensure(&value.block, bytes, "state"));
    if (bytes != 0) std::memcpy(value.block.data(), value.data, bytes);
    value.data = value.block.data();
  }
  updated_ = true;
  Renew(&value, NextVersion());
  return OkStatus();
}

Status StateStore::WriteInRun(size_t slot, const TensorView& data) {
  // The readers of the slot were compiled for its declared type; the type that is written may be
  // known only in this run.
  const StateSlot& declared = model_.module.states[slot];
  if (!(declared.type.dtype == data.dtype && declared.type.dims == data.dims)) {
    auto merged = MergeTypes(declared.type, Type::Tensor(data.dtype, data.dims));
    if (!merged.ok()) {
      return InvalidArgument("state '", declared.name, "' is ", declared.type,
                             ", what is written to it ", data.dtype, data.dims, ": ",
                             merged.status().message());
    }
  }
  if (IsUpdatedInPlace(declared.role)) {
    MSRT_RETURN_IF_ERROR(StoreBeside(slot, data));
    updated_ = true;
    return OkStatus();
  }
  const Type before = CurrentType(slot);
  MSRT_RETURN_IF_ERROR(Store(slot, &At(slot).pending, data));
  if (!At(slot).written) written_.push_back(slot);
  At(slot).written = true;
  if (!SameType(before, CurrentType(slot))) ++GroupOf(slot).type_changes;
  return OkStatus();
}

// Writes in place if there is room, which cannot fail; otherwise beside the old value, which stays
// if there is no memory for both.
Status StateStore::StoreBeside(size_t slot, const TensorView& data) {
  StateGroup& group = GroupOf(slot);
  StateGroup::Slot& s = group.slots[slot];
  const Type before = s.committed.type;
  if (s.committed.block.data() != nullptr &&
      s.committed.block.bytes() >= BytesOf(data.dtype, data.elements())) {
    MSRT_RETURN_IF_ERROR(Store(slot, &s.committed, data));
  } else {
    StateValue fresh;
    MSRT_RETURN_IF_ERROR(Store(slot, &fresh, data));
    std::swap(s.committed, fresh);
    group.budget.Release(&fresh.block);
    Renew(&fresh, fresh.version);
  }
  if (!SameType(before, s.committed.type)) ++group.type_changes;
  return OkStatus();
}

Status StateStore::Store(size_t slot, StateValue* value, const TensorView& data) {
  const Type type = Type::Tensor(data.dtype, data.dims);
  MSRT_RETURN_IF_ERROR(GroupOf(slot).budget.Ensure(&value->block, type.bytes(), "state"));
  if (type.bytes() != 0 && data.data != value->block.data())
    std::memmove(value->block.data(), data.data, type.bytes());
  value->data = value->block.data();
  value->type = type;
  Renew(value, NextVersion());
  return OkStatus();
}

Result<const void*> StateStore::Packed(size_t slot, bool current, const msrt_packing& packing,
                                       size_t bytes, FunctionRef<Status(std::byte*)> pack) {
  StateGroup& group = GroupOf(slot);
  auto& value = const_cast<StateValue&>(Value(slot, current));
  {
    const std::lock_guard lock(group.forms_mutex);
    for (const auto& form : value.forms) {
      if (form->Is(packing, bytes)) return static_cast<const void*>(form->data.data());
    }
  }
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const StateForm> form,
                        model_.state_forms->Get(model_.environment->allocator, slot, value.version,
                                                packing, bytes, pack));
  const std::lock_guard lock(group.forms_mutex);
  value.forms.push_back(form);
  return static_cast<const void*>(form->data.data());
}

Result<const void*> StateStore::PackedCopy(size_t bytes, FunctionRef<Status(std::byte*)> pack) {
  Block block;
  MSRT_RETURN_IF_ERROR(own_.budget.Ensure(&block, bytes, "packed state"));
  copies_.push_back(std::move(block));
  MSRT_RETURN_IF_ERROR(pack(copies_.back().data()));
  return static_cast<const void*>(copies_.back().data());
}

const StateCopy* StateStore::FindCopy(size_t slot, bool current, const Device* device,
                                      Layout layout) const {
  const std::lock_guard lock(GroupOf(slot).forms_mutex);
  for (const auto& copy : Value(slot, current).copies) {
    if (copy->device == device && copy->layout == layout) return copy.get();
  }
  return nullptr;
}

void StateStore::AddCopy(size_t slot, bool current, std::shared_ptr<const StateCopy> copy) {
  const std::lock_guard lock(GroupOf(slot).forms_mutex);
  const_cast<StateValue&>(Value(slot, current)).copies.push_back(std::move(copy));
}

bool StateStore::Finish(bool succeeded, uint32_t graph) {
  for (Block& copy : copies_) own_.budget.Release(&copy);
  copies_.clear();
  for (const size_t s : written_) {
    StateGroup::Slot& slot = At(s);
    if (succeeded) std::swap(slot.committed, slot.pending);
    else if (!SameType(slot.committed.type, slot.pending.type)) ++GroupOf(s).type_changes;
    slot.written = false;
    slot.pending.forms.clear();
    slot.pending.copies.clear();
  }
  written_.clear();
  retired_.clear();
  const bool mixture = updated_ && !succeeded;
  updated_ = false;
  if (!mixture) return false;
  for (size_t s = 0; s < count(); ++s) {
    if (!IsUpdatedInPlace(roles_[s]) || !model_.state_use.MayWrite(graph, s) || At(s).mixed)
      continue;
    At(s).mixed = true;
    ++shared_->mixed_count;
  }
  return true;
}

void StateStore::Trim() {
  for (size_t s = 0; s < count(); ++s) {
    if (IsShareable(roles_[s]) && shared_.use_count() > 1) continue;  // another run may use it
    GroupOf(s).budget.Release(&At(s).pending.block);
  }
}

size_t StateStore::bytes() const {
  size_t bytes = 0;
  for (size_t s = 0; s < count(); ++s) {
    if (made_shared_ || !IsShareable(roles_[s]))
      bytes += At(s).committed.block.bytes() + At(s).pending.block.bytes();
  }
  return bytes;
}

size_t StateStore::packed_bytes() const {
  size_t bytes = 0;
  for (size_t s = 0; s < count(); ++s) {
    const std::lock_guard lock(GroupOf(s).forms_mutex);
    for (const auto& form : At(s).committed.forms) bytes += form->data.bytes();
  }
  return bytes;
}

}  // namespace msrt
