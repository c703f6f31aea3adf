#include "core/run/state_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/run/convert.h"

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
  Renew(&group, &value, kInitialVersion);
  retired_.clear();  // no run is in progress
}

void StateStore::Renew(StateGroup* group, StateValue* value, uint64_t version) {
  if (value->only != nullptr) --group->on_device_count;
  value->only.reset();
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
      MSRT_ASSIGN_OR_RETURN(const TensorView value, other.Committed(s));
      MSRT_RETURN_IF_ERROR(Write(s, value));
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
  Renew(&group, &value, NextVersion());
  return OkStatus();
}

void StateStore::BeginUpdateOn(size_t slot, std::shared_ptr<const StateCopy> memory) {
  StateValue& value = shared_->slots[slot].committed;
  updated_ = true;
  std::erase(value.copies, memory);
  Renew(shared_.get(), &value, NextVersion());
  value.copies.push_back(memory);
  value.only = std::move(memory);
  ++shared_->on_device_count;
}

// The step may have packed the old value under the version that it had in BeginUpdateOn.
void StateStore::EndUpdateOn(size_t slot) {
  StateValue& value = shared_->slots[slot].committed;
  value.version = NextVersion();
  value.forms.clear();
}

Result<TensorView> StateStore::Committed(size_t slot) const {
  MSRT_RETURN_IF_ERROR(Fetch(slot, [](const Device&) { return OkStatus(); }));  // between runs
  return ViewOf(At(slot).committed);
}

Status StateStore::Fetch(size_t slot, FunctionRef<Status(const Device&)> join) const {
  StateGroup& group = *shared_;
  if (!IsUpdatedInPlace(roles_[slot]) || !AnyOnDevice()) return OkStatus();
  const std::lock_guard making(group.making_copy);
  StateValue& value = group.slots[slot].committed;
  if (value.only == nullptr) return OkStatus();
  const StateCopy& from = *value.only;
  const auto describe = [&](Status status) {
    return std::move(status).Within(StrCat("state '", model_.module.states[slot].name,
                                           "', whose value is on ", from.device->name()));
  };
  if (Status joined = join(*from.device); !joined.ok()) return describe(std::move(joined));
  // Another session may read the size of the block meanwhile, so that is changed under the lock.
  const size_t bytes = value.type.bytes();
  const bool fits = value.block.data() != nullptr && value.block.bytes() >= bytes;
  Block larger;
  Status status = fits ? OkStatus() : group.budget.Ensure(&larger, bytes, "state");
  if (status.ok()) status = Download(from, value.type, (fits ? value.block : larger).data());
  if (!status.ok()) {
    group.budget.Release(&larger);
    return describe(std::move(status));
  }
  const std::lock_guard lock(group.forms_mutex);
  if (!fits) {
    std::swap(value.block, larger);
    group.budget.Release(&larger);
  }
  value.data = value.block.data();
  value.only.reset();
  --group.on_device_count;
  return OkStatus();
}

Status StateStore::Download(const StateCopy& from, const Type& type, std::byte* to) const {
  const Environment& env = *model_.environment;
  const Host host(CallbackServices{env.allocator, env.log});
  const size_t bytes = BytesIn(from.layout, type.dtype, type.dims);
  Block laid_out;
  std::byte* copied = to;
  if (from.layout != Layout::kPlain) {
    MSRT_ASSIGN_OR_RETURN(laid_out, Block::Make(env.allocator, bytes, "state"));
    copied = laid_out.data();
  }
  MSRT_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, from.device->MakeStream(host));
  const Status enqueued = stream->CopyToHost(host, copied, from.data(), bytes);
  MSRT_RETURN_IF_ERROR(stream->Synchronize(host));
  MSRT_RETURN_IF_ERROR(enqueued);
  if (from.layout == Layout::kPlain) return OkStatus();
  return ConvertLayout({type.dtype, type.dims, from.layout, copied},
                       {type.dtype, type.dims, Layout::kPlain, to}, *env.parallel);
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
    Renew(&group, &fresh, fresh.version);
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
  Renew(&GroupOf(slot), value, NextVersion());
  return OkStatus();
}

Result<std::shared_ptr<const StateForm>> StateStore::Packed(size_t slot, bool current,
                                                            const msrt_packing& packing,
                                                            size_t bytes,
                                                            FunctionRef<Status(std::byte*)> pack) {
  StateGroup& group = GroupOf(slot);
  auto& value = const_cast<StateValue&>(Value(slot, current));
  {
    const std::lock_guard lock(group.forms_mutex);
    for (const auto& form : value.forms) {
      if (form->Is(packing, bytes)) return form;
    }
  }
  MSRT_ASSIGN_OR_RETURN(std::shared_ptr<const StateForm> form,
                        model_.state_forms->Get(model_.environment->allocator, slot, value.version,
                                                packing, bytes, [&](std::byte* to) {
                                                  CountPacking(packing, &PackCount::parameters,
                                                               bytes);
                                                  return pack(to);
                                                }));
  const std::lock_guard lock(group.forms_mutex);
  value.forms.push_back(form);
  return form;
}

std::shared_ptr<const StateCopy> StateStore::FindCopy(size_t slot, bool current,
                                                      const Device* device, Layout layout) const {
  const std::lock_guard lock(GroupOf(slot).forms_mutex);
  for (const auto& copy : Value(slot, current).copies) {
    if (copy->device == device && copy->layout == layout) return copy;
  }
  return nullptr;
}

void StateStore::AddCopy(size_t slot, bool current, std::shared_ptr<const StateCopy> copy) {
  const std::lock_guard lock(GroupOf(slot).forms_mutex);
  const_cast<StateValue&>(Value(slot, current)).copies.push_back(std::move(copy));
}

bool StateStore::Finish(bool succeeded, uint32_t graph) {
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
    if (!made_shared_ && IsShareable(roles_[s])) continue;
    const std::lock_guard lock(GroupOf(s).forms_mutex);
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
