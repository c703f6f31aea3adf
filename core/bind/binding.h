// A Binding is a Program for one set of input shapes: sizes, memory locations, and kernels bound to
// their shapes. It is immutable and shared by the sessions that run these shapes. Making one must
// be cheap: it re-infers types, plans memory, and leaves code generation for later.
//
// A binding ends before a step whose sizes depend on data and before control flow. `Continue` binds
// the rest once the data exists.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/program/program.h"

namespace msrt {

// Where the bytes of a buffer are during a run.
struct Location {
  enum Kind : uint8_t {
    kNowhere,
    kArena,
    kConstant,
    kInput,
    kOutput,
    kState,
    kStateCopy,  // kept with a slot, on a device or in another layout
    kEarlier,
    kHeld
  };
  Kind kind = kNowhere;
  uint16_t device = 0;  // whose memory it is; 0: the host's
  // Index of the input, output, state slot or held value; kEarlier: of the binding in the chain.
  uint32_t index = 0;
  // In the arena (kArena, kEarlier), or in the input or output. kState: 1 for the current value, 0
  // for the one before the run; kStateCopy: the same, plus twice the layout.
  size_t offset = 0;
  const std::byte* data = nullptr;  // kConstant
};

// A value of a state slot. The index is the slot, the lowest bit of the offset says which value.
inline bool IsOfSlot(const Location& l) {
  return l.kind == Location::kState || l.kind == Location::kStateCopy;
}

// A point in a queue that other queues can wait for. Each queue numbers its own.
struct EventId {
  QueueId queue;
  uint32_t number;
};

// A wait for the last copy that reads this input of the graph.
struct InputWait {
  EventId event;
  uint32_t input;
};

// Copies to devices of up to this many bytes read a copy that the host makes when it enqueues them,
// so that the source may change at once.
inline constexpr size_t kMaxStagedBytes = 4096;

struct BoundStep {
  StepKind kind;
  QueueId queue = kHostQueue;
  uint32_t step;               // index in the program
  uint32_t slot = 0;           // for state steps
  bool touches_state = false;  // reads or writes slots in place, or copies of them
  bool is_kept = false;        // a transfer that runs only if its result is not kept with the slot
  std::shared_ptr<const BoundKernel> kernel;  // pieces share them
  // Inputs, then outputs; `views[i].data` is filled from `locations[i]` at run time. None for a
  // kStateWrite of what a device has made in the slot's memory there.
  std::vector<TensorView> views;
  std::vector<Location> locations;
  std::vector<Dims> strides;  // of a piece: of the views that have some
  uint32_t input_count = 0;
  std::vector<EventId> waits;  // its queue waits for these first
  int32_t event = -1;          // recorded in its queue after the step; -1: none
  bool staged = false;         // kCopyToDevice: reads a copy of its source
  Location workspace;          // kKernel
  double flops = 0;
};

struct Binding {
  size_t begin_step = 0, end_step = 0;  // indices in the program
  std::vector<BoundStep> steps;
  std::vector<Location> locations;  // by buffer
  std::vector<Type> output_types;   // of the graph; concrete once the last step is bound
  std::vector<Type> state_types;    // of the slots in Program::state_slots, after its steps
  size_t arena_bytes = 0, lower_bound_bytes = 0;  // of the host
  std::vector<size_t> device_arena_bytes;         // by device; empty if there is only the host
  std::vector<uint32_t> event_counts;             // by queue
  // The host waits for these at the end: their copies write host memory, or read memory of the
  // frame. Those that read an input need not be waited for while the input stays unchanged.
  std::vector<EventId> end_waits;
  std::vector<InputWait> input_waits;
  // A step of one device touches the memory of another: their queues are joined before and after.
  bool joins_queues = false;
  // The queue whose steps can be captured: no other device has steps, and no copy from or to the
  // host. kHostQueue: there is none.
  QueueId captured_queue = kHostQueue;
  double flops = 0;
  size_t max_views = 0;  // of any step
  size_t bytes = 0;      // memory of the binding itself
  GraphFacts facts;
  // The previous one in a run's chain; its facts own values that `facts` refers to.
  std::shared_ptr<const Binding> previous;
  // Of a piece: its inputs and outputs are the sources and targets of the request, not the graph's.
  bool is_piece = false;
  std::shared_ptr<const void> owner;  // of known values of a piece

  explicit Binding(GraphFacts f) : facts(std::move(f)) {}
};

struct BindRequest {
  std::vector<Type> inputs;  // concrete, one for each graph input
  std::vector<Type> states;  // current types of the slots in Program::state_slots
};

// The delegate that made binding fail although another could do its work; empty for any other
// failure.
std::string FailedDelegateName(const Status& status);

// Checks the inputs against the declared types (symbols must agree) and sets their types.
Status SetInputTypes(const Graph& graph, const Module& module, std::span<const Type> inputs,
                     GraphFacts* facts);

// Checks the inputs and binds.
Result<std::shared_ptr<const Binding>> Bind(const Program& program, const Module& module,
                                            const Evaluator& evaluator, const BindRequest& request);

// Binds the steps from where `previous` (the last of `depth` bindings of this run) ended. `read`
// copies the bytes of a buffer that has been computed.
Result<std::shared_ptr<const Binding>> Continue(
    const Program& program, const Evaluator& evaluator, std::shared_ptr<const Binding> previous,
    uint32_t depth, FunctionRef<Status(BufferId, void* to, size_t bytes)> read);

// Binds the steps after the control step at which `previous` ended. `results` are the types of that
// step's results, `states` the current types of the slots in Program::state_slots.
Result<std::shared_ptr<const Binding>> ContinueAfterControl(
    const Program& program, const Evaluator& evaluator, std::shared_ptr<const Binding> previous,
    uint32_t depth, std::span<const Type> results, std::span<const Type> states);

std::string Print(const Program& program, const Binding& binding);

}  // namespace msrt
