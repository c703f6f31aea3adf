// A Binding: a Program for one set of input shapes. Sizes, places in memory, and kernels bound to
// their shapes; immutable, shared by the sessions that run these shapes. Making one must be cheap:
// it re-infers types, plans memory, and leaves code generation for later.
//
// A size that depends on data ends a binding, and so does control flow: it covers the steps up to
// there, and `Continue` binds the rest once the data exists.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/program/program.h"

namespace msrt {

// Where the bytes of a buffer are during a run.
struct Location {
  enum Kind : uint8_t { kNowhere, kArena, kConstant, kInput, kOutput, kState, kEarlier, kHeld };
  Kind kind = kNowhere;
  uint16_t device = 0;  // kArena, kEarlier: whose arena
  uint32_t index =
      0;              // input, output, state slot, held value; kEarlier: which binding of the chain
  size_t offset = 0;  // in the arena (kArena, kEarlier); kState: 1 for the value written in this
                      // run, 0 for the one before
  const std::byte* data = nullptr;  // kConstant
};

// A point in a device's stream, for the host to wait for. Numbered for each device by itself.
struct EventId {
  uint16_t device;
  uint32_t number;
};

struct BoundStep {
  StepKind kind;
  uint16_t device = 0;  // whose stream; 0: the host does it at once
  uint32_t step;        // in the program
  uint32_t slot = 0;    // state steps
  BoundKernel kernel;
  // Inputs, then outputs; `views[i].data` is filled from `places[i]` at run time.
  std::vector<TensorView> views;
  std::vector<Location> places;
  uint32_t input_count = 0;
  std::vector<EventId> waits;  // the host waits for these before it does or enqueues the step
  int32_t event = -1;  // recorded on its device's stream after the step, for somebody to wait for
  double flops = 0;
};

struct Binding {
  size_t begin_step = 0, end_step = 0;  // of the program
  std::vector<BoundStep> steps;
  std::vector<Location> places;    // by buffer
  std::vector<Type> output_types;  // of the graph; concrete once the last step is bound
  size_t arena_bytes = 0, lower_bound_bytes = 0;  // of the host
  std::vector<size_t> device_arena_bytes;         // by device; empty where only the host works
  std::vector<uint32_t> event_counts;             // by device
  double flops = 0;
  size_t most_views = 0;  // of any step
  size_t bytes = 0;       // what this binding itself holds
  GraphFacts facts;
  std::shared_ptr<const Binding>
      previous;  // of a run's chain; its facts own values that these refer to

  explicit Binding(GraphFacts f) : facts(std::move(f)) {}
};

struct BindRequest {
  std::vector<Type> inputs;  // concrete, one for each graph input
  std::vector<Type> states;  // current types of the module's state slots
};

// The delegate because of which binding failed, though another could do its work; empty if it is
// not that.
std::string FailedDelegateName(const Status& status);

// Checks the inputs against the declared types (symbols must agree) and binds.
Result<std::shared_ptr<const Binding>> Bind(const Program& program, const Module& module,
                                            const Evaluator& evaluator, const BindRequest& request);

// Binds from where `previous` (the last of `depth` bindings of this run) ended. `read` copies the
// bytes of a buffer that exists by now.
Result<std::shared_ptr<const Binding>> Continue(
    const Program& program, const Evaluator& evaluator, std::shared_ptr<const Binding> previous,
    uint32_t depth, FunctionRef<Status(BufferId, void* to, size_t bytes)> read);

// Binds the steps after a control step that `previous` ended at. `results` are the types of what
// that step gave, `states` those of the module's state slots by now.
Result<std::shared_ptr<const Binding>> ContinueAfterControl(
    const Program& program, const Evaluator& evaluator, std::shared_ptr<const Binding> previous,
    uint32_t depth, std::span<const Type> results, std::span<const Type> states);

std::string Print(const Program& program, const Binding& binding);

}  // namespace msrt
