// The state slots of a session: their values, and what the run in progress wrote.
//
// Runs write caches and statistics beside the value from before: the new values become committed if
// the run succeeds and are dropped otherwise. They write parameters and optimizer state in place. A
// run that fails after its first such write leaves a mixture, and the slots that it may write must
// be written or reset before the next run.
//
// A parameter or optimizer state that a device's kernel updates lives on that device, in the layout
// of the kernel: later steps read and write it there, and the host's value is fetched only when it
// is needed (Fetch). If the device fails, the value is lost with it.
//
// Sessions may share all slots but caches (SharedState). The lock is taken by the session: for
// writing around runs that may write shared slots, for reading around all others.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/compile/compiled_model.h"
#include "core/delegate/device.h"
#include "core/run/budget.h"
#include "core/run/state_lock.h"

namespace msrt {

// The value of a slot on a device or in another layout, kept while the value does not change.
struct StateCopy {
  const Device* device = nullptr;  // null: the host
  Layout layout = Layout::kPlain;
  std::shared_ptr<DeviceBlock> on_device;
  std::shared_ptr<Block> on_host;

  std::byte* data() const { return device != nullptr ? on_device->data() : on_host->data(); }
};

// One value of a slot: in its own block, or the module's initial data in place.
struct StateValue {
  Type type;
  const std::byte* data = nullptr;
  Block block;  // empty: `data` is the initial data
  // Identifies the value among all that the slot has in the sessions of the model.
  uint64_t version = 0;
  std::vector<std::shared_ptr<const StateForm>> forms;   // of this version
  std::vector<std::shared_ptr<const StateCopy>> copies;  // the same
  // One of the copies, on a device, which alone has the value: `data` is out of date. Null: `data`
  // has the value.
  std::shared_ptr<const StateCopy> only;
};

// Slots with one budget and one lifetime.
struct StateGroup {
  struct Slot {
    StateValue committed, pending;  // pending: written by the run in progress
    bool written = false;           // `pending` is the current value
    bool mixed = false;             // a failed run may have written it
  };
  StateGroup(const Budget& b, size_t count) : budget(b), slots(count) {}

  Budget budget;
  std::vector<Slot> slots;  // by slot of the module; those of the other group are not used
  // Counts changes of a current type; atomic, because a run that uses none of the slots reads it
  // without the lock.
  std::atomic<uint64_t> type_changes{1};
  size_t mixed_count = 0;
  std::atomic<size_t> on_device_count{0};  // slots whose value is only on a device
  // Guards StateValue::forms and copies, and what Fetch changes: several runs may read at once.
  mutable std::mutex forms_mutex;
  std::mutex making_copy;  // held while a copy is made, so that only one run makes it
};

// The parameters, optimizer state and statistics of one or more sessions of a model.
struct SharedState : StateGroup {
  using StateGroup::StateGroup;
  StateLock lock;
};

class StateStore {
 public:
  // `shared`: that of another session of the model; null: its own. The model outlives the store.
  StateStore(const CompiledModel& model, const Budget& budget, std::shared_ptr<SharedState> shared);

  size_t count() const { return roles_.size(); }
  const std::shared_ptr<SharedState>& shared() const { return shared_; }

  // Between runs.
  Status Write(size_t slot, const TensorView& data);
  void Reset(size_t slot);
  Result<TensorView> Committed(size_t slot) const;
  // Copies all values of another store of the same model. On an error, some are copied.
  Status CopyFrom(const StateStore& other);
  // An error if a failed run left a mixture.
  Status CheckNotMixed() const;

  // During a run.
  const Type& CurrentType(size_t slot) const { return Current(slot).type; }
  TensorView CurrentView(size_t slot) const { return ViewOf(Current(slot)); }
  // Changes whenever the current type of a slot does.
  uint64_t type_changes() const { return own_.type_changes + shared_->type_changes; }
  // Returns the memory of the current value, or of the one from before the run.
  std::byte* Memory(size_t slot, bool current) const {
    return const_cast<std::byte*>(Value(slot, current).data);
  }
  uint64_t Version(size_t slot, bool current) const { return Value(slot, current).version; }
  // Call before a step that makes a new value in the slot's memory: it may move that memory.
  Status BeginUpdate(size_t slot);
  // The same for a step of a device: `memory` is there, and is the copy that FindCopy finds if
  // there is one. The slot's value is in it from now on.
  void BeginUpdateOn(size_t slot, std::shared_ptr<const StateCopy> memory);
  // Call when that step has been enqueued: readers from now on see the new value.
  void EndUpdateOn(size_t slot);
  // Whether Fetch may have something to do.
  bool AnyOnDevice() const { return shared_->on_device_count.load() != 0; }
  // Copies the value to the host if it is only on a device. `join` waits for work on that device
  // that this session has enqueued.
  Status Fetch(size_t slot, FunctionRef<Status(const Device&)> join) const;
  // Makes `data` the current value; nothing is copied if it is in the slot's memory.
  Status WriteInRun(size_t slot, const TensorView& data);
  // Returns the value in a packed form, which the slot holds until the value changes.
  Result<std::shared_ptr<const StateForm>> Packed(size_t slot, bool current,
                                                  const msrt_packing& packing, size_t bytes,
                                                  FunctionRef<Status(std::byte*)> pack);
  void CountPacking(const msrt_packing& packing, size_t PackCount::*kind, size_t bytes) const {
    model_.packings->Add(packing.kernel, kind, bytes);
  }
  // Returns the value on a device (null: the host) in a layout, valid until the run ends; null if
  // there is no such copy of the value.
  std::shared_ptr<const StateCopy> FindCopy(size_t slot, bool current, const Device* device,
                                            Layout layout) const;
  // Hold this while a copy is made, and look for it once more before.
  std::unique_lock<std::mutex> LockCopies(size_t slot) {
    return std::unique_lock(GroupOf(slot).making_copy);
  }
  // The copy is complete, for all queues.
  void AddCopy(size_t slot, bool current, std::shared_ptr<const StateCopy> copy);

  // Ends a run of that graph: commits the pending values if it succeeded, else drops them. Returns
  // whether it leaves a mixture.
  bool Finish(bool succeeded, uint32_t graph);

  void Trim();
  // Own memory of the slots; shared ones count in the session that made them. Without copies.
  size_t bytes() const;
  size_t packed_bytes() const;

 private:
  static TensorView ViewOf(const StateValue& v) {
    return {v.type.dtype, v.type.dims, Layout::kPlain, const_cast<std::byte*>(v.data)};
  }
  StateGroup& GroupOf(size_t slot) { return IsShareable(roles_[slot]) ? *shared_ : own_; }
  const StateGroup& GroupOf(size_t slot) const {
    return IsShareable(roles_[slot]) ? *shared_ : own_;
  }
  StateGroup::Slot& At(size_t slot) { return GroupOf(slot).slots[slot]; }
  const StateGroup::Slot& At(size_t slot) const { return GroupOf(slot).slots[slot]; }
  const StateValue& Value(size_t slot, bool current) const {
    const StateGroup::Slot& s = At(slot);
    return current && s.written ? s.pending : s.committed;
  }
  const StateValue& Current(size_t slot) const { return Value(slot, true); }
  void SetInitial(size_t slot);
  // The value has changed, in the memory of the host: gives it a new version. Queues may still read
  // copies of the old one.
  void Renew(StateGroup* group, StateValue* value, uint64_t version);
  Status Download(const StateCopy& from, const Type& type, std::byte* to) const;
  void ClearMixed(size_t slot);
  Status Store(size_t slot, StateValue* value, const TensorView& data);
  Status StoreBeside(size_t slot, const TensorView& data);

  const CompiledModel& model_;
  std::vector<StateRole> roles_;  // by slot
  StateGroup own_;                // caches
  std::shared_ptr<SharedState> shared_;
  bool made_shared_ = false;     // this store made `shared_`, and counts its memory
  std::vector<size_t> written_;  // slots that the run in progress wrote beside their values
  bool updated_ = false;         // the run in progress has begun to write in place
  std::vector<std::shared_ptr<const StateCopy>> retired_;  // until the run ends
};

}  // namespace msrt
