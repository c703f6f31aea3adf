// A session: runs one entry of a compiled model. It owns inputs, outputs, state and the arena, and
// shares everything else with other sessions of the model.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/compile/compile.h"
#include "core/run/profile.h"
#include "core/run/run_options.h"
#include "core/run/value.h"

namespace msrt {

class Communicator;     // core/comm/communicator.h
struct ExchangeTotals;  // core/run/run_context.h

struct SessionOptions {
  // Arena + frames + scratch + outputs + state; 0: no cap. Shared state counts in the session that
  // was made first.
  size_t memory_cap_bytes = 0;
  int32_t stream_priority = 0;  // of its work on devices
  // For a model that communicates (core/parallel). It must outlive the session, which alone uses
  // it. A failed or cancelled run aborts it: all ranks fail. Each rank needs its own runtime, since
  // a run holds the threads of its runtime while it waits for other ranks.
  Communicator* communicator = nullptr;
  // For collectives in the background (attribute of msrt.AllReduce), of the same ranks. Only needed
  // if the model has some.
  Communicator* background_communicator = nullptr;
};

struct SessionMemory {
  size_t arena_bytes = 0, arena_lower_bound_bytes = 0;  // of the last run
  size_t frame_bytes = 0;  // activations of graphs, without their arenas
  size_t scratch_bytes = 0, output_bytes = 0;
  size_t state_bytes = 0;         // 0 for slots that another session made, or that are initial
  size_t packed_state_bytes = 0;  // packed forms of slots, which sessions share; not in the cap
  size_t device_bytes = 0;        // arenas on devices; the cap covers the host only
  size_t total() const {
    return arena_bytes + frame_bytes + scratch_bytes + output_bytes + state_bytes;
  }
};

// Used by one thread at a time, except Cancel. A second thread that calls Run meanwhile gets an
// error, not a race.
class Session {
 public:
  // `share` (may be null): a session of the same model whose parameters, optimizer state and
  // statistics the new one shares; caches are its own. Runs that may write shared slots exclude all
  // others of the sessions that share them; a run that cannot start waits, up to its deadline. The
  // shared slots live as long as any of the sessions.
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const CompiledModel> model,
                                                 size_t entry, const SessionOptions& options,
                                                 const Session* share = nullptr);
  ~Session();
  // A session of the same model with its own memory and a copy of this one's state.
  Result<std::unique_ptr<Session>> Clone() const;

  const CompiledModel& model() const;
  const Program& program() const;
  const Graph& graph() const;

  // The data is used in place and must stay valid until it is replaced; `owner` (may be null) is
  // held meanwhile. Dims and types are checked when the run binds.
  Status SetInput(size_t index, const TensorView& data, std::shared_ptr<const void> owner);
  // The same for a value of any kind.
  Status SetInput(size_t index, RunValue value);
  // Results go to this memory instead of the session's own, if type and dims fit and no input or
  // other output is in it. A view with null data unbinds. The last result of this output is
  // dropped.
  Status SetOutput(size_t index, const TensorView& memory, std::shared_ptr<const void> owner,
                   const Device* device = nullptr);

  // After an error the outputs must not be used, and caches and statistics are unchanged. So are
  // parameters and optimizer state, unless the run had begun to update them: the error says so, and
  // the next run is refused until those slots are written or reset.
  Status Run(const RunOptions& options);
  // Any thread. Stops the run in progress before its next step; does nothing if there is none.
  void Cancel();

  // The result of the last successful run; valid until the next run or until the session is
  // destroyed.
  Result<TensorView> Output(size_t index) const;
  // The same for a result of any kind.
  Result<RunValue> OutputValue(size_t index) const;
  // Holds the memory of that result, even beyond the session; the next run may still write to it.
  // Null if no owner is needed.
  std::shared_ptr<const void> OutputOwner(size_t index) const;
  // Drops that result: other owners keep its memory unchanged, and it no longer counts against the
  // cap. Bound memory stays bound.
  void ReleaseOutput(size_t index);

  // Valid until the next run or write of this session, or of one that shares the slot.
  Result<TensorView> State(size_t slot) const;
  // Calls `read` with the value, which no other session changes meanwhile.
  Status ReadState(size_t slot, FunctionRef<Status(const TensorView&)> read) const;
  Status WriteState(size_t slot, const TensorView& data);
  Status ResetState(size_t slot);
  // Copies all state of another session of the same model: a snapshot, or back from one. On an
  // error, some slots are copied.
  Status CopyState(const Session& from);

  // Frees the arena, scratch and outputs; the next run allocates again.
  void Trim();
  SessionMemory memory() const;
  // The profile of the last run; empty if it was not profiled.
  const RunProfile& profile() const;
  // The communication of the last run.
  const ExchangeTotals& exchanges() const;
  // The binding of the last run; null before the first.
  std::shared_ptr<const Binding> binding() const;

 private:
  class Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace msrt
