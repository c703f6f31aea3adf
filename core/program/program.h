// A Program: the decisions that are made once for a graph, between placement and binding. It says
// which delegate runs each node on which device and in which layout, where tensors are copied and
// converted, and which values are views of others, and it owns the compiled kernels with their
// packed weights. A binding adds sizes and offsets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/place/place.h"
#include "core/program/uploaded_constants.h"
#include "ops/collective.h"
#include "ops/control.h"
#include "ops/exchange.h"

namespace msrt {

// A value in one state. Views share the memory of their root.
using BufferId = uint32_t;
inline constexpr BufferId kNoBuffer = UINT32_MAX;
struct Buffer {
  ValueId value;
  TensorState state;
  BufferId root;                        // itself, unless it is a view
  const std::byte* uploaded = nullptr;  // a constant in the memory of its device
  int32_t held =
      -1;  // index in the frame's held values (results of control flow, lists); -1: in an arena
};

enum class StepKind : uint8_t {
  kKernel,
  kConvert,  // the same value in another layout, or a plain copy, within one memory
  kCopyToDevice,
  kCopyToHost,
  kCopyPeer,  // from one device to another
  kView,      // other dims, no data moved
  kStateRead,
  kStateWrite,
  kExchange,  // communicates with other ranks by the session's communicator
  kControl,   // calls graphs, or works on lists and functions: frames run it, and the sizes of its
              // outputs are known only afterwards
};

// How a state read finds its value; see state_use.h.
enum class StateAccess : uint8_t {
  kCopy,
  kBefore,   // in place: the value from before the run
  kInPlace,  // in place: the current value
};

// A value that a step makes in the memory of the slot to which it is written later: on the host, or
// on the value's device.
struct StateUpdate {
  uint32_t made;  // the step
  uint32_t slot;
  BufferId value;  // a root
};

inline constexpr uint32_t kNoNode = UINT32_MAX;

// A queue executes steps in order: kHostQueue is the host itself, at once; queue d is the session's
// stream on Program::devices[d]; kThreadQueue is a thread of the session for host work that mostly
// waits; kBackgroundQueue is another, for collectives whose results are wanted much later, so that
// they do not hold up those that are wanted at once. Where the tensors of a step are is another
// matter: a copy touches two memories.
using QueueId = uint16_t;
inline constexpr QueueId kHostQueue = 0, kThreadQueue = kMaxDevices,
                         kBackgroundQueue = kMaxDevices + 1;
inline bool IsThread(QueueId queue) { return queue >= kThreadQueue; }
inline bool IsOnDevice(QueueId queue) { return queue != kHostQueue && !IsThread(queue); }

struct Step {
  StepKind kind;
  QueueId queue = kHostQueue;
  // The last node that it runs; for transfers, the node that needs them. kNoNode: the copy of an
  // output in a graph without nodes.
  uint32_t node = kNoNode;
  std::vector<uint32_t> nodes;  // the nodes that it runs; none for transfers
  Kernel kernel;
  std::string delegate;  // kernels: its name
  std::string algorithm;
  std::vector<BufferId> inputs, outputs;
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
  double seconds = 0;           // of one run, by the cost model
  std::string arithmetic = {};  // of a kernel; empty: no promise
  // For control flow: the roles of its inputs. Null for lists.
  std::shared_ptr<const ControlShape> control = nullptr;
  // For kExchange, one of them: of an msrt.Exchange, or of a collective.
  std::shared_ptr<const ExchangePlan> exchange = nullptr;
  std::shared_ptr<const CollectivePlan> collective = nullptr;
  // For kernels: see msrt_candidate.
  uint64_t strided_inputs = 0, strided_outputs = 0;
  Dims granule = {};  // empty: none
  bool packs_constants = false;
  bool tail = false;  // the last step, whose results are the graph's: its frame is no longer needed
  uint32_t slot = 0;  // for state steps and kept transfers
  StateAccess access = StateAccess::kCopy;  // for state reads and kept transfers
  // A transfer of a slot's value whose result is kept with the slot until the value changes; see
  // state_use.h.
  bool is_kept = false;
};

struct Program {
  const Graph* graph = nullptr;  // belongs to the model that owns this program
  std::shared_ptr<const Host> host;
  std::shared_ptr<const OfferedGraph> offered;
  std::vector<std::shared_ptr<const Device>>
      devices;  // by TensorState::device; null for the host and where nothing runs
  std::vector<std::shared_ptr<const DeviceBlock>> uploads;  // constants, shared by the model
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<BufferId> input_buffers, output_buffers;  // for the graph's inputs and outputs
  std::vector<NodeExplanation> explanations;            // by node
  std::vector<FailedDelegate>
      failed_delegates;  // those of the options, and those that failed while the program was made
  double seconds = 0, lower_bound = 0;  // of one run, by the cost model
  bool optimal = false;
  size_t packed_bytes = 0;
  double flops = 0;  // of one run at the typical shapes
  uint32_t held_count = 0;
  std::vector<uint32_t> state_slots;       // those that its state steps touch, ascending
  std::vector<StateUpdate> state_updates;  // ascending by `made`
  bool uses_thread = false;                // some step is on a thread

  // One more than the last queue.
  size_t queue_count() const { return uses_thread ? kBackgroundQueue + 1u : devices.size(); }
};

// Places, compiles and lays out the steps. Unless the options are strict, a candidate that fails to
// compile is left out and the graph placed again; so is a delegate that mostly fails to compile or
// whose device fails. Constants on devices are shared through `uploads`. `place_millis` gets the
// time up to the first finished placement.
Result<std::unique_ptr<Program>> MakeProgram(
    std::shared_ptr<const OfferedGraph> graph, std::shared_ptr<const Host> host,
    std::span<const std::shared_ptr<const Delegate>> delegates, const PlaceOptions& options,
    const Log& log, UploadedConstants* uploads, double* place_millis);

std::string_view StepKindName(StepKind kind);
// The node of Step::node; null for kNoNode.
const Node* NodeOf(const Program& program, const Step& step);
// For messages: "node 17 'conv1' (Conv)", or "output 'y'" if no node is concerned.
std::string Describe(const Program& program, const Step& step);
std::string Print(const Program& program);

}  // namespace msrt
