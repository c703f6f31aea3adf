// A Program: what is decided once for a model. Which delegate runs each node on which device and in
// which layout, where tensors are copied and converted, which values are only views of others, and
// the compiled kernels with their packed weights. Sizes and offsets come later, with a binding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/place/place.h"
#include "ops/control.h"

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
      -1;  // not in an arena: the frame holds it under this number (results of control flow; lists)
};

enum class StepKind : uint8_t {
  kKernel,
  kConvert,  // the same value in another layout, or a plain copy
  kCopyToDevice,
  kCopyToHost,
  kView,  // other dims, no data moved
  kStateRead,
  kStateWrite,
  kControl,  // calls graphs, or works on lists and functions: frames do it, and its outputs have
             // the sizes they turn out to have
};

inline constexpr uint32_t kNoNode = UINT32_MAX;

struct Step {
  StepKind kind;
  uint16_t device = 0;  // whose stream it runs on; 0: the host does it at once
  // The last that it runs; for transfers the one they were made for. kNoNode: the copy of an output
  // in a graph without nodes.
  uint32_t node = kNoNode;
  std::vector<uint32_t> nodes;  // that it runs; none for transfers
  Kernel kernel;
  std::string delegate;  // kernels: its name
  std::string algorithm;
  std::vector<BufferId> inputs, outputs;
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
  double seconds = 0;  // of one run, by the model of costs
  // Control flow: how its inputs divide. Null for lists.
  std::shared_ptr<const ControlShape> control = nullptr;
  bool tail =
      false;  // the last step, and its results are the graph's: the frame is not needed any more
};

struct Program {
  const Graph* graph = nullptr;  // of the model that owns this program
  std::shared_ptr<const Host> host;
  std::shared_ptr<const OfferedGraph> placed;
  std::vector<std::shared_ptr<const Device>>
      devices;  // by TensorState::device; null for the host and where nothing runs
  std::vector<DeviceBlock> uploads;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<BufferId> input_buffers, output_buffers;  // for the graph's inputs and outputs
  std::vector<NodeExplanation> explanations;            // by node
  std::vector<FailedDelegate> lost;     // those of the options, and what failed while this was made
  double seconds = 0, lower_bound = 0;  // of one run, by the model of costs
  bool optimal = false;
  size_t packed_bytes = 0;
  double flops = 0;  // of one run at the typical shapes
  uint32_t held_count = 0;
  // State may be read where it lies: no other graph writes it in the same run.
  bool reads_state_in_place = true;
};

// Places, compiles and lays out the steps. What fails to compile is left out and placement made
// again, and so is a delegate of which hardly anything compiles or whose device fails, unless the
// options are strict. `place_millis` gets the time up to the first finished placement.
Result<std::unique_ptr<Program>> MakeProgram(
    std::shared_ptr<const OfferedGraph> graph, std::shared_ptr<const Host> host,
    std::span<const std::shared_ptr<const Delegate>> delegates, const PlaceOptions& options,
    const Log& log, double* place_millis);

std::string_view StepKindName(StepKind kind);
// The node of Step::node; null for kNoNode.
const Node* NodeOf(const Program& program, const Step& step);
// For messages: "node 17 'conv1' (Conv)", or "output 'y'" if no node is concerned.
std::string Describe(const Program& program, const Step& step);
std::string Print(const Program& program);

}  // namespace msrt
