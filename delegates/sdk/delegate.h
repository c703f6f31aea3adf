// The C++ interface of a delegate: msrt_plugin.h for delegates written in this repository. A
// delegate looks at a graph, says what it can run, in which layouts and at what cost, and why it
// refuses the rest; compiles the candidates that are chosen; and runs them. Export (export.h) turns
// one into the C interface, and everything here is made from what crosses that interface.
//
//   Query    once per model; cheap (rules and a cost model, no code generation), because every
//            delegate is asked about every node
//   Compile  once per chosen candidate; packs weights and fixes the algorithm from the typical
//            shapes
//   Bind     once per new set of shapes or piece of the node; must not cost more than a few
//            microseconds: expensive work waits for Prepare
//   Run      many times, from any number of threads
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/allocator.h"
#include "core/base/machine.h"
#include "core/base/parallel_for.h"
#include "core/base/status.h"
#include "core/graph/op_view.h"
#include "core/graph/tensor.h"

namespace msrt::sdk {

// One node of the graph that is offered.
struct NodeInfo {
  // The declared types: dims may be unknown. Constant inputs have their values in op.constant(i);
  // they stay valid while the compiled kernel lives.
  const OpView* op;
  // The same node with every unknown dim replaced by a typical one (from the model's hints or the
  // first request). Costs and algorithms are chosen for these; what is compiled must still run for
  // every shape that the declared types admit.
  const OpView* typical;
  double flops, bytes;  // of one run at the typical shapes, from the op's entry; 0 without an entry
  // Ids of the input and output values: equal ids are the same value, -1 is an omitted one.
  std::span<const int64_t> inputs, outputs;
  // By input: a parameter of the model, of which RunArgs::forms keeps packed forms.
  std::span<const char> parameters;
  Machine machine;  // peak throughput of the host's cores; estimates are fractions of it
};

class GraphView {
 public:
  virtual ~GraphView() = default;
  virtual size_t node_count() const = 0;
  virtual NodeInfo node(size_t index) const = 0;
};

// Candidate::device of a candidate that is offered for each of the delegate's devices.
inline constexpr int32_t kAnyDevice = -1;

// A way to run one node, or several as one step.
struct Candidate {
  uint32_t node = 0;
  // Several nodes, ascending, instead of `node`; see msrt_candidate for what they read and make.
  std::vector<uint32_t> nodes = {};
  // One per input and output. Constants and tensors of rank other than 3 to 5 are always plain.
  std::vector<Layout> input_layouts, output_layouts;
  double seconds = 0;      // estimated time of one run at the typical shapes, launch included
  std::string arithmetic;  // the rule by which elements are computed; empty: no promise
  std::string algorithm;   // for --explain
  // Pairs (input, output) that may share memory if they have the same number of bytes and the input
  // is not used afterwards.
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
  bool packs_constants = false;  // Run gets no data for constant inputs
  bool reduced = false;          // rounds to fewer bits than its types have
  uint64_t tag = 0;              // for the delegate's use; the host ignores it
  int32_t device = 0;            // index in Delegate::devices, or kAnyDevice; Compile gets an index
  size_t workspace_bytes = 0;    // memory beyond the tensors, at the typical shapes
  bool asynchronous = false;     // mostly waits: Run is called in a thread of its own
  // Bit i: Run takes TensorView::strides of input or output i. The host copies the others.
  uint64_t strided_inputs = 0, strided_outputs = 0;
  // By dim of output 0: where pieces may begin and end, see msrt_candidate. Empty: anywhere.
  Dims granule = {};
};

struct Refusal {
  uint32_t node;
  std::string reason;  // "grouped transposed convolution in f64"
};

struct QueryResult {
  std::vector<Candidate> candidates;
  std::vector<Refusal> refusals;
};

// Memory that a kernel needs only while it runs; counts against the session's cap.
class Scratch {
 public:
  virtual ~Scratch() = default;
  // Aligned to kTensorAlignment; valid until the next call.
  virtual Result<void*> Get(size_t bytes) = 0;
};

// Names a form that constants and parameters are packed into; see msrt_packing.
struct Packing {
  std::string kernel, isa;
  uint32_t block = 0, version = 0;
};

// Packed forms of the inputs of a run that are parameters; see msrt_run_args.packed_input.
class InputForms {
 public:
  virtual ~InputForms() = default;
  // `pack` writes all of the `bytes` bytes if no session has the form of the current value.
  virtual Result<const void*> Get(size_t input, const Packing& packing, size_t bytes,
                                  FunctionRef<Status(std::byte*)> pack) = 0;
};

struct RunArgs {
  std::span<const TensorView> inputs;   // null data where an optional input is omitted
  std::span<const TensorView> outputs;  // null data where the output is unused
  ParallelFor& parallel;
  Scratch& scratch;
  InputForms& forms;
  // On a device: which one, and the stream to enqueue the work in. Tensors are in its memory.
  int32_t device = 0;
  void* stream = nullptr;
  void* workspace = nullptr;  // of workspace_bytes(), where the tensors are
};

// A kernel for one set of shapes. Shared by the sessions that use the same shapes: Prepare and Run
// may be called from several threads at once.
class BoundKernel {
 public:
  virtual ~BoundKernel() = default;
  // Does what Run would otherwise do on its first call (generating code, allocating).
  virtual Status Prepare() { return OkStatus(); }
  virtual Status Run(const RunArgs& args) = 0;
  // Memory that Run gets as a workspace.
  virtual size_t workspace_bytes() const { return 0; }
  // Memory that it holds beyond a few hundred bytes; counts against the binding cache.
  virtual size_t bytes() const { return 0; }
};

// A compiled candidate: owns its packed weights; immutable, shared by all sessions of a model.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `op` has concrete types and the values of inputs known by now. It is the node that Compile got,
  // or a piece of it: then its attributes tell where in the whole it is, and its tensors are parts
  // of the node's, constants included. kUnsupported: the kernel cannot compute this piece. The
  // attributes live as long as the bound kernel; unlike the graph that Compile gets, the rest is
  // valid only during the call.
  virtual Result<std::unique_ptr<BoundKernel>> Bind(const OpView& op) = 0;
  // The same for a candidate of several nodes, which are in its order.
  virtual Result<std::unique_ptr<BoundKernel>> BindNodes(std::span<const OpView* const> ops) {
    return Bind(*ops[0]);
  }
  virtual size_t packed_bytes() const { return 0; }
};

// Finds packed forms in the model's file, and adds them to a file that is being written; see
// msrt_host_api. Any thread may call it.
class FormStore {
 public:
  virtual ~FormStore() = default;
  // Returns null if there is none.
  virtual const void* Find(const void* constant, const Packing& packing, size_t bytes) const = 0;
  virtual Status Keep(const void* constant, const Packing& packing,
                      std::span<const std::byte> data) const = 0;
};

// Everything it points to outlives the kernel.
struct CompileContext {
  Allocator* allocator;              // for packed weights
  ParallelFor* parallel;             // for packing; has the threads that Run will have
  const FormStore* forms = nullptr;  // used by packed_form.h; null: none
};

class Delegate {
 public:
  virtual ~Delegate() = default;
  virtual const char* name() const = 0;
  // See native_types in msrt_delegate_api.
  virtual uint32_t native_types() const { return 0; }
  // Names of the registered devices that its candidates run on; none: the host.
  virtual std::vector<std::string> devices() const { return {}; }
  // Appends candidates in any order, several for one node if there are several ways to run it
  // (layouts, algorithms). Must not fail: refuses nodes that it does not understand.
  virtual void Query(const GraphView& graph, QueryResult* out) const = 0;
  // `candidate` is one that Query returned for this graph. `graph` and everything its nodes point
  // to outlive the kernel.
  virtual Result<std::unique_ptr<Kernel>> Compile(const GraphView& graph,
                                                  const Candidate& candidate,
                                                  const CompileContext& context) const = 0;
};

}  // namespace msrt::sdk
