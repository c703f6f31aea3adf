// A frame: one activation of a graph. Frames are on an explicit stack and are reused for the next
// activation of the same graph, with their memory and bindings, so that a loop whose shapes are
// stable allocates nothing.
#pragma once

#include <memory>
#include <vector>

#include "core/compile/compile.h"
#include "core/run/budget.h"
#include "core/run/device_queue.h"
#include "core/run/value.h"

namespace msrt {

// Bytes that fixed a shape.
struct DataRead {
  BufferId buffer;
  std::vector<std::byte> bytes;
};

// The device steps of a segment as the device recorded them, by the addresses that they use and the
// versions of the slots that they read: a loop alternates between two sets.
struct Replay {
  std::vector<uint64_t> key;
  std::shared_ptr<const Recording> recording;  // null: has run once so far
};
struct Replays {
  std::shared_ptr<const Binding> binding;  // that they belong to, destroyed after them
  std::vector<Replay> known;
  bool refused = false;  // the device failed to record
};

// The part of a frame's steps that one binding covers, with its memory. The binding is reused while
// the types and data that it was made for stay the same.
struct BoundSegment {
  std::shared_ptr<const Binding> binding;
  Block arena;
  std::vector<DeviceBlock> device_arenas;  // by device of the program
  Replays replays;                         // of the device steps
  std::vector<Type> results, states;       // after a control step
  uint64_t state_types = 0;                // StateStore::type_changes() when `states` was recorded
  std::vector<DataRead> reads;             // after a size in data; empty if they are too many bytes
  size_t own_bytes = 0;                    // of a binding that no other frame shares
};

// A value that a loop passes from one iteration to the next. The body reads `now` while it writes
// the other cell.
struct CarriedValue {
  RunValue now;
  ResultCell cells[2];
  int next = 0;  // the cell that the body writes
  ResultCell& written() { return cells[next]; }
};

// The stacked results of all iterations.
struct ScannedResult {
  ResultCell slice, whole;
  int64_t filled = 0;
};

// The loop that a frame is in: at most one at a time.
struct LoopState {
  int64_t iteration = 0, trips = 0;
  bool in_condition = false;  // While: its condition is being computed, not its body
  ResultCell condition;
  std::vector<CarriedValue> carried;
  std::vector<ScannedResult> scanned;
  std::vector<ResultCell> slices;  // of scanned inputs that are not contiguous
};

struct Frame {
  static constexpr size_t kNotProfiled = SIZE_MAX;

  uint32_t graph = 0;
  std::shared_ptr<const EntryProgram> placed;
  uint64_t run = 0;  // the run in which `placed` was last compared with the model's program
  BindRequest request;
  uint64_t state_types = 0;  // StateStore::type_changes() when request.states was recorded
  std::vector<BoundSegment> segments;
  uint32_t depth = 0;              // the segment in progress
  size_t profiled = kNotProfiled;  // the control step in progress, in the run's profile
  std::vector<RunValue> inputs;
  bool passes_slots = false;      // some of the inputs are values of state slots, in place
  size_t stable_from = SIZE_MAX;  // inputs from here on stay unchanged until the caller's step ends
  std::vector<ResultCell*> outputs;  // where the caller wants them
  std::vector<ResultCell> held;      // results of control steps, lists, functions: see Buffer::held
  std::vector<ResultCell> unwanted;  // results of callees that this graph does not use
  std::vector<ResultCell> arguments;  // of a tail call: copied from a frame that is gone
  size_t own_bytes = 0;               // of the frame itself
  std::vector<DeviceQueue*> queues;   // by device of the program; null: the host, or not used yet
  LoopState loop;

  const Program& program() const { return *placed->program; }
  const Graph& graph_of() const { return *placed->program->graph; }
  BoundSegment& segment() { return segments[depth]; }
};

void Release(ResultCell* cell, Budget* budget);
void ReleaseSegments(Frame* frame, Budget* budget);
// Releases everything that the frame holds, on devices too.
void ReleaseMemory(Frame* frame, Budget* budget);
size_t OwnBytes(const Frame& frame);     // of the frame itself, without values
size_t HostBytes(const Frame& frame);    // arenas and values
size_t DeviceBytes(const Frame& frame);  // the same on devices

}  // namespace msrt
