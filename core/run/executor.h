// Runs programs: frames on an explicit stack, their steps in order, control flow between them.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/run/budget.h"
#include "core/run/frame.h"
#include "core/run/profile.h"
#include "core/run/run_options.h"
#include "core/run/state_store.h"

namespace msrt {

class Executor {
 public:
  Executor(const CompiledModel& model, Budget* budget, StateStore* states,
           const std::atomic<bool>* cancelled)
      : model_(model),
        budget_(*budget),
        states_(*states),
        cancelled_(*cancelled),
        scratch_(budget),
        idle_(model.module.graphs.size()),
        frame_counts_(idle_.size()),
        continuations_(idle_.size()) {}

  // Inputs are used in place. Results go to the cells.
  Status Run(uint32_t graph, std::span<const RunValue> inputs, std::span<ResultCell> outputs,
             const RunOptions& options);

  // The delegate or device that failed in the last run and whose work another could do; the name is
  // empty if there is none.
  struct Failure {
    std::string delegate;
    uint32_t graph = 0;
    std::shared_ptr<const EntryProgram> placed;
  };
  const Failure& failure() const { return failure_; }

  const RunProfile& profile() const { return profile_; }
  // The first binding of the last run; null before the first.
  std::shared_ptr<const Binding> binding() const { return binding_; }

  void Trim();
  size_t arena_bytes() const;  // arenas and other values of frames
  size_t frame_bytes() const;  // of frames themselves
  size_t arena_lower_bound() const { return arena_lower_bound_; }
  size_t scratch_bytes() const { return scratch_.bytes(); }
  size_t device_bytes() const;

 private:
  class Unwind;
  using FrameOwner = std::unique_ptr<Frame>;

  Status LoopOnTeam();
  Status Loop();
  void RecordFailure(const Status& status);
  // Frames.
  // `replaced` (may be null): the caller, which ends with this call.
  Result<FrameOwner> Acquire(uint32_t graph, const Frame* replaced);
  Status CheckLimits(uint32_t graph, const Frame* replaced) const;
  Status Push(uint32_t graph, std::span<const RunValue> inputs,
              std::span<ResultCell* const> outputs);
  Status BindInputs(Frame* frame);
  void RecordStates(const Program& program, std::vector<Type>* types, uint64_t* seen,
                    std::shared_ptr<const Binding>* binding) const;
  void Pop();
  void Refresh(Frame* frame);
  Status RunSegment(Frame* frame);
  Status NextSegment(Frame* frame);
  Status SegmentAfterData(Frame* frame);
  Result<bool> DataUnchanged(Frame* frame, const BoundSegment& next);
  Status SegmentAfterControl(Frame* frame, const Step& control);
  Status BindAfterControl(Frame* frame, BoundSegment* next);
  Status SetOwnBinding(BoundSegment* segment, std::shared_ptr<const Binding> binding);
  Status AllocateOutputs(Frame* frame, const Binding& binding);
  void FinishOutputs(Frame* frame);

  // Values between the host and devices (device_values.cc).
  // Returns the device on which the program expects input i; null: the host.
  static const Device* DeviceOfInput(const Program& program, size_t i);
  Status MoveInput(Frame* frame, size_t i);
  Status AllocateOnDevice(Frame* frame, ResultCell* cell, uint16_t device, const Type& type);
  // Copies a value from a device to the cell's memory on the host. `producer`: the graph that made
  // it, which is placed again if the device fails.
  Status CopyToHost(ResultCell* cell, const RunValue& value, uint32_t producer,
                    std::string_view name);
  Result<Stream*> CopyStream(const Device& device);

  // Steps.
  Status RunStep(Frame* frame, uint32_t bound);
  Status Execute(Frame* frame, const BoundStep& step);
  Status BeginStateUpdates(const BoundStep& step);
  Status RunKernel(Frame* frame, const BoundStep& step);
  TensorView ViewOf(const BoundStep& step, size_t i) const;
  void* Resolve(const Frame& frame, const Location& place, uint32_t depth) const;
  std::byte* ArenaOf(const Frame& frame, uint16_t device, uint32_t depth) const;
  Status Read(Frame* frame, BufferId buffer, void* to, size_t bytes);
  Status CheckStopped(const Frame& frame, const Step& step) const;

  // Record the frame's control step in the profile.
  void BeginRecord(Frame* frame);
  void EndRecord(Frame* frame);

  // Control flow (control.cc). True: the step is done; false: another frame has to run first.
  Result<bool> BeginControl(Frame* frame);
  Result<bool> ResumeControl(Frame* frame);
  RunValue InputOf(Frame* frame, const Step& step, size_t i) const;
  Result<int64_t> NumberOf(Frame* frame, const Step& step, size_t i) const;
  // Returns the cell that output i of a control step goes to.
  ResultCell* CellOf(Frame* frame, const Step& step, size_t i);
  ResultCell* UnwantedCell(Frame* frame, size_t i);
  Result<bool> Call(Frame* frame, const Step& step, uint32_t graph,
                    std::span<const RunValue> captured);
  Status TailCall(Frame* frame, uint32_t graph);
  Result<bool> BeginLoop(Frame* frame, const Step& step);
  Result<bool> NextIteration(Frame* frame, const Step& step);
  Status CallBody(Frame* frame, const Step& step);
  Status TakeResults(Frame* frame, const Step& step);
  Status FinishLoop(Frame* frame, const Step& step);
  Status Stack(Frame* frame, const Step& step, size_t i);
  Result<RunValue> SliceOf(Frame* frame, const Step& step, size_t i);
  Status MakePartial(Frame* frame, const Step& step);

  // Lists (lists.cc).
  Status RunListStep(Frame* frame, const Step& step);
  Result<RunValue> MakeList(Frame* frame, const Step& step);
  Result<RunValue> ChangeList(Frame* frame, const Step& step);
  Result<RunValue> ElementOfList(Frame* frame, const Step& step);
  Result<RunValue> SplitToList(Frame* frame, const Step& step);
  Status JoinList(const ListValue& list, const Node& node, ResultCell* cell, std::string_view name);
  Result<RunValue> LastingCopy(const RunValue& value);
  Result<TensorView> AllocateResult(ResultCell* cell, const Type& type, std::string_view name);
  // `source` (may be null): the cell whose memory the value is in; the two cells swap their memory.
  Status Deliver(ResultCell* cell, const RunValue& value, ResultCell* source,
                 std::string_view name);

  const CompiledModel& model_;
  Budget& budget_;
  StateStore& states_;
  const std::atomic<bool>& cancelled_;
  SessionScratch scratch_;
  RunOptions options_;
  uint64_t run_ = 0, calls_ = 0;
  std::vector<FrameOwner> stack_;
  std::vector<std::vector<FrameOwner>> idle_;  // by graph
  std::vector<size_t> frame_counts_;           // by graph: idle or not
  // The last binding after a control step, with the types it was made for.
  struct Continuation {
    std::shared_ptr<const EntryProgram> placed;  // destroyed after the binding
    std::shared_ptr<const Binding> binding;
    std::vector<Type> results, states;
  };
  std::vector<std::vector<Continuation>> continuations_;  // by graph, then by segment
  Failure failure_;
  std::shared_ptr<const EntryProgram> binding_placed_;
  std::shared_ptr<const Binding> binding_;
  std::vector<void*> pointers_;      // of the step in progress
  std::vector<std::byte> read_;      // data that determines sizes
  std::vector<RunValue> arguments_;  // of the call that is being made
  std::vector<ResultCell*> targets_;
  std::vector<std::unique_ptr<Stream>> copy_streams_;  // for CopyToHost
  std::vector<const Device*> copy_devices_;            // of copy_streams_
  RunProfile profile_;
  size_t arena_lower_bound_ = 0;
};

}  // namespace msrt
