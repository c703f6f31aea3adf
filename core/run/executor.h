// Runs programs: frames on an explicit stack, their segments in order, control flow between them.
// This class only chains the parts; each is a class or a set of functions of its own.
#pragma once

#include <memory>

#include "core/run/calls.h"
#include "core/run/control.h"
#include "core/run/step_runner.h"

namespace msrt {

class Executor {
 public:
  Executor(const CompiledModel& model, Budget* budget, StateStore* states,
           const std::atomic<bool>* cancelled, int32_t stream_priority,
           Communicator* communicator = nullptr, Communicator* background = nullptr)
      : context_{model, *budget, *states, *cancelled, stream_priority, communicator, background} {}

  // Inputs are used in place. Results go to the cells.
  Status Run(uint32_t graph, std::span<const RunValue> inputs, std::span<ResultCell> outputs,
             const RunOptions& options);

  // The same for a binding of a piece of the graph, made from `placed`: inputs and outputs are the
  // sources and targets of its request, and outputs are bound to memory.
  Status RunPiece(uint32_t graph, std::shared_ptr<const EntryProgram> placed,
                  std::shared_ptr<const Binding> binding, std::span<const RunValue> inputs,
                  std::span<ResultCell> outputs, const RunOptions& options);

  // Results of the last run besides its outputs.
  const RunFailure& failure() const { return context_.failure; }
  const RunProfile& profile() const { return context_.profile; }
  const ExchangeTotals& exchanges() const { return context_.exchanges; }
  // The first binding; null before the first run.
  std::shared_ptr<const Binding> binding() const { return binding_; }
  size_t arena_lower_bound() const { return context_.arena_lower_bound; }

  const FrameStack& frames() const { return frames_; }
  size_t scratch_bytes() const { return steps_.scratch_bytes(); }
  void Trim();

 private:
  class Unwind;
  void BeginRun(const RunOptions& options);
  Status OnTeam(FunctionRef<Status()> work);
  Status Loop();
  // A rank that failed never runs again by itself: all ranks fail with it.
  void AbortRanks(const Status& status);
  void RecordFailure(const Status& status);
  Status NameFrames(Status status) const;
  Status FetchInputs(Frame* frame);
  Status DeliverBound(Frame* frame);
  // Waits for all queues. Returns the first failure.
  Status Synchronize();
  // Record the frame's control step in the profile.
  void BeginRecord(Frame* frame);
  void EndRecord(Frame* frame);

  RunContext context_;
  FrameStack frames_{&context_};
  Queues queues_{&context_};
  ThreadQueue thread_{&context_}, background_{&context_};
  DeviceValues values_{&context_, &queues_};
  Segments segments_{&context_, &values_};
  Calls calls_{&context_, &frames_, &segments_};
  StepRunner steps_{&context_, &values_, &thread_, &background_};
  ControlFlow control_{&context_, &calls_, &values_};
  std::vector<ResultCell*> targets_;
  std::shared_ptr<const EntryProgram> binding_placed_;
  std::shared_ptr<const Binding> binding_;
};

}  // namespace msrt
