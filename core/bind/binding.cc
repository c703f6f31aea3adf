#include "core/bind/binding.h"

#include <algorithm>
#include <map>

#include "core/bind/memory_plan.h"
#include "core/bind/waits.h"
#include "core/graph/outline.h"
#include "core/place/owned_types.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// Binds the steps from binding->begin_step until the first whose sizes are not known yet.
class Binder {
 public:
  // `states`: types of the slots in program.state_slots when the steps begin.
  Binder(const Program& program, const Evaluator& evaluator, std::span<const Type> states,
         Binding* binding, uint32_t depth)
      : program_(program),
        graph_(*program.graph),
        evaluator_(evaluator),
        out_(*binding),
        depth_(depth),
        states_(states.begin(), states.end()),
        is_output_(program.buffers.size()) {
    for (const BufferId b : program.output_buffers) is_output_[b] = true;
  }

  // `sized`: the output types of the first step are already known.
  Status Run(bool first, bool sized) {
    MSRT_RETURN_IF_ERROR(Propagate(first, sized));
    FindLifetimes();
    ShareInPlace();
    MSRT_RETURN_IF_ERROR(BindKernels());
    PlanArenas();
    MakeSteps();
    if (program_.queue_count() > 1) AddWaits(program_, &out_);
    return OkStatus();
  }

 private:
  struct Group {  // buffers that share memory
    bool used = false, in_arena = false;
    uint32_t first = UINT32_MAX, last = 0;
    size_t bytes = 0;
    BufferId merged_into = kNoBuffer;
  };

  const Type& TypeOf(BufferId b) const {
    return out_.facts.types[IndexOf(program_.buffers[b].value)];
  }
  size_t BytesFor(BufferId b) const {
    return BytesIn(program_.buffers[b].state.layout, TypeOf(b).dtype, TypeOf(b).dims);
  }
  uint16_t MemoryOf(BufferId b) const { return program_.buffers[b].state.device; }
  BufferId RootOf(BufferId b) const { return program_.buffers[b].root; }

  Status Propagate(bool first, bool sized) {
    out_.end_step = program_.steps.size();
    for (size_t s = out_.begin_step; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      if (step.kind == StepKind::kControl) {
        out_.end_step = s;
        break;
      }
      if (!sized || s != out_.begin_step) MSRT_RETURN_IF_ERROR(PropagateStep(step));
      FindStateUpdates(s);
      const bool concrete = std::all_of(step.outputs.begin(), step.outputs.end(), [&](BufferId b) {
        return b == kNoBuffer || TypeOf(b).concrete();
      });
      if (concrete) continue;
      if (!first && s == out_.begin_step) {
        return Unsupported(
            Describe(program_, step),
            ": the size of its output depends on data in a way that this version cannot follow");
      }
      out_.end_step = s;
      break;
    }
    return OkStatus();
  }

  Status PropagateStep(const Step& step) {
    if (step.kind == StepKind::kStateRead) {
      out_.facts.types[IndexOf(program_.buffers[step.outputs[0]].value)] = StateType(step.slot);
      return OkStatus();
    }
    if (step.kind == StepKind::kStateWrite) {
      StateType(step.slot) = TypeOf(step.inputs[0]);
      return OkStatus();
    }
    if (step.kind == StepKind::kKernel && IsControl(graph_.nodes[step.node]))
      return SizeOwned(step);
    for (uint32_t n : step.nodes)
      MSRT_RETURN_IF_ERROR(PropagateNode(graph_, n, evaluator_, &out_.facts));
    return OkStatus();
  }

  // The slots of a program are few or their steps many: the search costs less than an index.
  Type& StateType(uint32_t slot) {
    const auto& slots = program_.state_slots;
    const auto at = std::lower_bound(slots.begin(), slots.end(), slot) - slots.begin();
    return states_[static_cast<size_t>(at)];
  }

  // Finds the outputs of step s that are made in the memory of a slot. The slot has its type from
  // before the update until the value is written.
  void FindStateUpdates(size_t s) {
    const auto& all = program_.state_updates;
    auto update = std::lower_bound(all.begin(), all.end(), s,
                                   [](const StateUpdate& u, size_t step) { return u.made < step; });
    for (; update != all.end() && update->made == s; ++update) {
      const Type& made = TypeOf(update->value);
      const Type& slot = StateType(update->slot);
      if (made.concrete() && made.bytes() == slot.bytes()) updates_.push_back(&*update);
    }
  }

  // Control flow that a delegate runs as a whole: its outputs need memory before it runs.
  Status SizeOwned(const Step& step) {
    const Node& node = graph_.nodes[step.node];
    std::vector<Type>& types = out_.facts.types;
    const auto open = [&](ValueId v) { return v != kNoValue && !types[IndexOf(v)].concrete(); };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), open)) return OkStatus();
    const auto results =
        OwnedResults(*program_.offered, node, [&](ValueId v) { return types[IndexOf(v)]; });
    if (!results) {
      return DelegateError(Describe(program_, step),
                           ": its output sizes do not follow from its input sizes")
          .With(kFailedDelegate, step.delegate);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) types[IndexOf(node.outputs[i])] = (*results)[i];
    }
    return OkStatus();
  }

  // True if all outputs of the step are already known values.
  bool IsRedundant(const Step& step) const {
    if (step.kind == StepKind::kStateWrite || step.outputs.empty()) return false;
    return std::all_of(step.outputs.begin(), step.outputs.end(), [&](BufferId b) {
      if (b == kNoBuffer) return true;
      const Buffer& buffer = program_.buffers[b];
      return out_.facts.known[IndexOf(buffer.value)] != nullptr && buffer.state == kHostPlain &&
             !IsOutput(b);
    });
  }

  bool IsOutput(BufferId b) const { return is_output_[b]; }

  void FindLifetimes() {
    groups_.resize(program_.buffers.size());
    skipped_.resize(program_.steps.size());
    if (out_.locations.empty()) out_.locations.resize(program_.buffers.size());
    LocateFixed();
    for (size_t s = out_.begin_step; s < out_.end_step; ++s) {
      const Step& step = program_.steps[s];
      skipped_[s] = IsRedundant(step);
      if (skipped_[s]) continue;
      for (BufferId b : step.inputs) Touch(b, s);
      for (BufferId b : step.outputs) Touch(b, s);
    }
    LocateState();
    if (program_.queue_count() > 1) ExtendToJoins();
    // Buffers that later bindings of this run need must keep their memory until the end.
    for (size_t s = out_.end_step; s < program_.steps.size(); ++s) {
      for (BufferId b : program_.steps[s].inputs) {
        if (b != kNoBuffer && groups_[RootOf(b)].used)
          groups_[RootOf(b)].last = static_cast<uint32_t>(out_.end_step);
      }
    }
  }

  // Host memory that a step of another queue touches is in use until the host waits for that step,
  // which it does where it first reads a later result of the queue, or at the end.
  void ExtendToJoins() {
    std::vector<uint32_t> join(program_.queue_count(), static_cast<uint32_t>(out_.end_step));
    std::vector<uint32_t> first_reader(program_.buffers.size(),
                                       static_cast<uint32_t>(out_.end_step));
    for (size_t s = out_.end_step; s-- > out_.begin_step;) {
      const Step& step = program_.steps[s];
      if (skipped_[s]) continue;
      if (step.queue == kHostQueue) {
        for (BufferId b : step.inputs) {
          if (b != kNoBuffer) first_reader[RootOf(b)] = static_cast<uint32_t>(s);
        }
        continue;
      }
      for (BufferId b : step.outputs) {
        if (b != kNoBuffer && program_.buffers[b].state.device == 0)
          join[step.queue] = std::min(join[step.queue], first_reader[RootOf(b)]);
      }
      for (BufferId b : step.inputs) {
        if (b == kNoBuffer || program_.buffers[b].state.device != 0) continue;
        Group& g = groups_[RootOf(b)];
        const bool staged = step.kind == StepKind::kCopyToDevice && g.bytes <= kMaxStagedBytes;
        if (!staged) g.last = std::max(g.last, join[step.queue]);
      }
    }
  }

  void Touch(BufferId b, size_t s) {
    if (b == kNoBuffer) return;
    Group& g = groups_[RootOf(b)];
    g.used = true;
    g.first = std::min(g.first, static_cast<uint32_t>(s));
    g.last = std::max(g.last, static_cast<uint32_t>(s));
    g.bytes = std::max(g.bytes, BytesFor(b));
    g.in_arena = out_.locations[RootOf(b)].kind == Location::kNowhere;
  }

  // Reads that PlanStateAccess found to need no copy, and values made in the memory of a slot.
  void LocateState() {
    const auto locate = [&](BufferId b, uint32_t slot, bool current) {
      groups_[b].in_arena = false;
      out_.locations[b] = {Location::kState, 0, slot, current ? size_t{1} : size_t{0}, nullptr};
    };
    for (size_t s = out_.begin_step; s < out_.end_step; ++s) {
      const Step& read = program_.steps[s];
      if (read.kind != StepKind::kStateRead || read.access == StateAccess::kCopy) continue;
      locate(read.outputs[0], read.slot, read.access == StateAccess::kInPlace);
      skipped_[s] = true;
    }
    const auto locate_copy = [&](BufferId b, uint32_t slot, bool current) {
      const auto layout = static_cast<size_t>(program_.buffers[b].state.layout);
      groups_[b].in_arena = false;
      out_.locations[b] = {Location::kStateCopy, MemoryOf(b), slot,
                           2 * layout + (current ? size_t{1} : size_t{0}), nullptr};
    };
    for (const StateUpdate* u : updates_) {
      if (u->made >= out_.end_step || !groups_[u->value].in_arena) continue;
      if (MemoryOf(u->value) == 0) locate(u->value, u->slot, true);
      else locate_copy(u->value, u->slot, true);
    }
    for (size_t s = out_.begin_step; s < out_.end_step; ++s) {
      const Step& step = program_.steps[s];
      if (step.is_kept && !skipped_[s])
        locate_copy(step.outputs[0], step.slot, step.access == StateAccess::kInPlace);
    }
  }

  // Sets the locations of all buffers with memory outside the arena.
  void LocateFixed() {
    for (size_t i = 0; i < program_.input_buffers.size(); ++i) {
      const BufferId b = program_.input_buffers[i];
      out_.locations[b] = {Location::kInput, MemoryOf(b), static_cast<uint32_t>(i), 0, nullptr};
    }
    for (size_t i = 0; i < program_.output_buffers.size(); ++i) {
      const BufferId b = program_.output_buffers[i];
      out_.locations[b] = {Location::kOutput, MemoryOf(b), static_cast<uint32_t>(i), 0, nullptr};
    }
    for (BufferId b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (buffer.uploaded != nullptr)
        out_.locations[b] = {Location::kConstant, buffer.state.device, 0, 0, buffer.uploaded};
      if (out_.locations[b].kind != Location::kNowhere || buffer.state != kHostPlain) continue;
      const ConstTensor* known = out_.facts.known[IndexOf(buffer.value)];
      if (known != nullptr) out_.locations[b] = {Location::kConstant, 0, 0, 0, known->bytes.data()};
    }
  }

  // Lets an output take over the memory of an input that dies in the same step.
  void ShareInPlace() {
    for (size_t s = out_.begin_step; s < out_.end_step; ++s) {
      const Step& step = program_.steps[s];
      if (skipped_[s]) continue;
      for (const auto& [input, output] : step.in_place) {
        if (input >= step.inputs.size() || output >= step.outputs.size()) continue;
        const BufferId in = step.inputs[input], out = step.outputs[output];
        if (in == kNoBuffer || out == kNoBuffer) continue;
        const BufferId from = Merged(RootOf(in)), to = RootOf(out);
        if (!groups_[from].in_arena || !groups_[to].in_arena || from == to ||
            groups_[to].merged_into != kNoBuffer)
          continue;
        if (groups_[from].last != s || groups_[from].bytes != BytesFor(out) ||
            BytesFor(in) != BytesFor(out))
          continue;
        const auto uses = std::count_if(step.inputs.begin(), step.inputs.end(), [&](BufferId b) {
          return b != kNoBuffer && Merged(RootOf(b)) == from;
        });
        if (uses != 1) continue;
        groups_[to].merged_into = from;
        groups_[from].last = groups_[to].last;
        groups_[from].bytes = std::max(groups_[from].bytes, groups_[to].bytes);
        break;
      }
    }
  }

  BufferId Merged(BufferId root) const {
    while (groups_[root].merged_into != kNoBuffer) root = groups_[root].merged_into;
    return root;
  }

  void PlanArenas() {
    const size_t devices = program_.devices.size();
    if (devices > 1) out_.device_arena_bytes.resize(devices);
    for (uint16_t device = 0; device < devices; ++device) {
      const MemoryPlan plan = PlanArena(device);
      if (devices > 1) out_.device_arena_bytes[device] = plan.arena_bytes;
      if (device != 0) continue;
      out_.arena_bytes = plan.arena_bytes;
      out_.lower_bound_bytes = plan.lower_bound_bytes;
    }
    for (BufferId b = 0; b < groups_.size(); ++b) {
      const BufferId root = Merged(RootOf(b));
      if (out_.locations[b].kind == Location::kNowhere) out_.locations[b] = out_.locations[root];
    }
  }

  // A device's steps run in order, like the host's, so that memory can be reused as soon as the
  // last reader is enqueued. Copies between device and host wait (waits.h).
  MemoryPlan PlanArena(uint16_t device) {
    std::vector<LiveBlock> blocks;
    std::vector<BufferId> owners;
    for (BufferId b = 0; b < groups_.size(); ++b) {
      const Group& g = groups_[b];
      if (!g.used || !g.in_arena || g.merged_into != kNoBuffer ||
          program_.buffers[b].state.device != device)
        continue;
      blocks.push_back({g.bytes, g.first, g.last});
      owners.push_back(b);
    }
    const auto is_here = [&](uint32_t s) {
      const QueueId queue = program_.steps[s].queue;
      return (IsThread(queue) ? kHostQueue : queue) == device;
    };
    for (const auto& [s, bytes] : workspace_bytes_) {
      // A thread uses its workspace until it is joined.
      const bool late = IsThread(program_.steps[s].queue);
      if (is_here(s)) blocks.push_back({bytes, s, late ? static_cast<uint32_t>(out_.end_step) : s});
    }
    MemoryPlan plan = PlanMemory(blocks);
    for (size_t i = 0; i < owners.size(); ++i)
      out_.locations[owners[i]] = {Location::kArena, device, depth_, plan.offsets[i], nullptr};
    size_t next = owners.size();
    for (const auto& [s, bytes] : workspace_bytes_) {
      if (is_here(s))
        workspaces_[s] = {Location::kArena, device, depth_, plan.offsets[next++], nullptr};
    }
    return plan;
  }

  Status BindKernels() {
    for (size_t s = out_.begin_step; s < out_.end_step; ++s) {
      const Step& step = program_.steps[s];
      if (skipped_[s] || step.kind != StepKind::kKernel) continue;
      MSRT_ASSIGN_OR_RETURN(BoundKernel kernel, BindKernel(step));
      if (const size_t bytes = kernel.workspace_bytes(); bytes != 0)
        workspace_bytes_.emplace_back(static_cast<uint32_t>(s), bytes);
      kernels_.push_back(std::move(kernel));
    }
    return OkStatus();
  }

  void MakeSteps() {
    size_t next_kernel = 0;
    for (size_t s = out_.begin_step; s < out_.end_step; ++s) {
      const Step& step = program_.steps[s];
      if (skipped_[s] || step.kind == StepKind::kView) continue;
      BoundStep bound;
      bound.kind = step.kind;
      bound.queue = step.queue;
      bound.step = static_cast<uint32_t>(s);
      // What a device made in the slot's memory there is not touched by the step that writes it.
      const bool on_device = step.kind == StepKind::kStateWrite && MemoryOf(step.inputs[0]) != 0;
      if (!on_device) {
        bound.input_count = static_cast<uint32_t>(step.inputs.size());
        for (BufferId b : step.inputs) AddView(b, &bound);
        for (BufferId b : step.outputs) AddView(b, &bound);
      }
      bound.touches_state = std::any_of(bound.locations.begin(), bound.locations.end(), IsOfSlot);
      if (step.kind == StepKind::kKernel) {
        bound.kernel = std::make_shared<const BoundKernel>(std::move(kernels_[next_kernel++]));
        const auto workspace = workspaces_.find(static_cast<uint32_t>(s));
        if (workspace != workspaces_.end()) bound.workspace = workspace->second;
        bound.flops = FlopsOf(step);
        out_.flops += bound.flops;
        out_.bytes += bound.kernel->bytes();
      } else if (step.kind == StepKind::kStateRead || step.kind == StepKind::kStateWrite) {
        bound.slot = step.slot;
      }
      bound.is_kept = step.is_kept;
      out_.max_views = std::max(out_.max_views, bound.views.size());
      out_.bytes +=
          sizeof(BoundStep) + bound.views.size() * (sizeof(TensorView) + sizeof(Location)) + 256;
      out_.steps.push_back(std::move(bound));
    }
    out_.bytes += out_.locations.size() * sizeof(Location) + out_.facts.types.size() * sizeof(Type);
    out_.state_types = std::move(states_);
    out_.bytes += out_.state_types.size() * sizeof(Type);
    for (ValueId v : graph_.outputs) out_.output_types.push_back(out_.facts.types[IndexOf(v)]);
  }

  double FlopsOf(const Step& step) const {
    double flops = 0;
    for (uint32_t n : step.nodes) {
      const Node& node = graph_.nodes[n];
      if (node.def != nullptr && node.def->cost != nullptr)
        flops += node.def->cost(NodeView(node, out_.facts).op()).flops;
    }
    return flops;
  }

  Result<BoundKernel> BindKernel(const Step& step) {
    shapes_.clear();
    known_.clear();
    for (uint32_t n : step.nodes) {
      const Node& node = graph_.nodes[n];
      for (ValueId v : node.inputs) {
        shapes_.push_back(v == kNoValue ? msrt_shape{} : ShapeOf(out_.facts.types[IndexOf(v)]));
        const ConstTensor* known = v == kNoValue ? nullptr : out_.facts.known[IndexOf(v)];
        known_.push_back(known == nullptr ? nullptr : known->bytes.data());
      }
      for (ValueId v : node.outputs)
        shapes_.push_back(v == kNoValue ? msrt_shape{} : ShapeOf(out_.facts.types[IndexOf(v)]));
    }
    nodes_.clear();
    const msrt_shape* shapes = shapes_.data();
    const void* const* known = known_.data();
    for (uint32_t n : step.nodes) {
      const size_t inputs = graph_.nodes[n].inputs.size(), outputs = graph_.nodes[n].outputs.size();
      msrt_bound_node bound{};
      bound.inputs = shapes, bound.input_count = inputs;
      bound.outputs = shapes + inputs, bound.output_count = outputs;
      bound.known = known;
      nodes_.push_back(bound);
      shapes += inputs + outputs;
      known += inputs;
    }
    auto kernel = step.kernel.Bind(*program_.host, nodes_);
    if (kernel.ok()) return kernel;
    Status status = std::move(kernel).status().Within(Describe(program_, step));
    if (MayRunElsewhere(status.code(), IsOnDevice(step.queue)))
      status = std::move(status).With(kFailedDelegate, step.delegate);
    return status;
  }

  void AddView(BufferId b, BoundStep* bound) const {
    if (b == kNoBuffer) {
      bound->views.emplace_back();
      bound->locations.emplace_back();
      return;
    }
    bound->views.push_back(
        {TypeOf(b).dtype, TypeOf(b).dims, program_.buffers[b].state.layout, nullptr});
    bound->locations.push_back(out_.locations[b]);
  }

  const Program& program_;
  const Graph& graph_;
  const Evaluator& evaluator_;
  Binding& out_;
  const uint32_t depth_;
  std::vector<Type> states_;     // of program_.state_slots, after the steps propagated so far
  std::vector<bool> is_output_;  // by buffer
  std::vector<const StateUpdate*> updates_;                   // that the sizes admit
  std::vector<Group> groups_;                                 // by root buffer
  std::vector<bool> skipped_;                                 // by step: its outputs are known
  std::vector<BoundKernel> kernels_;                          // in the order of their steps
  std::vector<std::pair<uint32_t, size_t>> workspace_bytes_;  // step, bytes
  std::map<uint32_t, Location> workspaces_;                   // by step
  // Arguments of the kernel that is being bound; members to save allocations.
  std::vector<msrt_shape> shapes_;
  std::vector<const void*> known_;
  std::vector<msrt_bound_node> nodes_;
};

// `symbols` contains the sizes of the module's symbols according to earlier inputs; -1: not known.
Status CheckInput(const Module& module, const Graph& graph, size_t i, const Type& given,
                  std::vector<int64_t>* symbols) {
  const Value& input = graph.value(graph.inputs[i]);
  if (given.kind != input.type.kind)
    return InvalidArgument("input ", i, " '", input.name, "' is ", given, ", the model wants ",
                           TypeText(input.type, module));
  if (!given.is_tensor()) return OkStatus();
  if (given.dtype != input.type.dtype) {
    return InvalidArgument("input ", i, " '", input.name, "' has element type ", given.dtype,
                           ", the model wants ", input.type.dtype);
  }
  if (!input.type.rank_known) return OkStatus();
  if (given.rank() != input.type.rank()) {
    return InvalidArgument("input ", i, " '", input.name, "' has shape ", given.dims,
                           ", the model wants rank ", input.type.rank(), ": ",
                           TypeText(input.type, module));
  }
  for (int d = 0; d < given.rank(); ++d) {
    const int64_t want = input.type.dims[d], have = given.dims[d];
    if (IsKnown(want) && want != have) {
      return InvalidArgument("input ", i, " '", input.name, "' has shape ", given.dims,
                             ", the model wants ", TypeText(input.type, module), ": dim ", d,
                             " must be ", want);
    }
    if (!IsSymbol(want)) continue;
    int64_t& bound = (*symbols)[SymbolOf(want)];
    if (bound >= 0 && bound != have) {
      return InvalidArgument("input ", i, " '", input.name, "' has shape ", given.dims, ": dim ", d,
                             " is ", have, ", but '", module.symbols[SymbolOf(want)], "' is ",
                             bound, " in an earlier input or dim");
    }
    bound = have;
  }
  return OkStatus();
}

using ReadBuffer = FunctionRef<Status(BufferId, void* to, size_t bytes)>;

Result<ConstTensor> ReadWhole(BufferId b, const Type& type, ReadBuffer read) {
  auto bytes = std::make_shared<std::vector<std::byte>>(type.bytes());
  if (!bytes->empty()) MSRT_RETURN_IF_ERROR(read(b, bytes->data(), bytes->size()));
  return ConstTensor{type.dtype, type.dims, *bytes, bytes};
}

// Reads the small inputs of a step that may determine its sizes; they have been computed.
Status ReadSmallInputs(const Program& program, const Step& step, ReadBuffer read,
                       GraphFacts* facts) {
  for (BufferId b : step.inputs) {
    if (b == kNoBuffer) continue;
    const ValueId v = program.buffers[b].value;
    const Type& t = facts->types[IndexOf(v)];
    if (facts->known[IndexOf(v)] != nullptr || t.elements() > 256 || BitsOf(t.dtype) < 8) continue;
    MSRT_ASSIGN_OR_RETURN(ConstTensor data, ReadWhole(b, t, read));
    facts->SetKnown(v, std::move(data));
  }
  return OkStatus();
}

bool IsSizedByData(const Node& node) { return node.def != nullptr && node.def->sizes != nullptr; }

bool IsSizedByData(const Graph& graph, const Step& step) {
  return step.kind == StepKind::kKernel &&
         std::any_of(step.nodes.begin(), step.nodes.end(),
                     [&](uint32_t n) { return IsSizedByData(graph.nodes[n]); });
}

// Sizes a node whose output sizes depend on data of any extent: the op's entry counts. The data is
// held only for this call.
Status SizeNode(const Program& program, const Step& step, uint32_t n, ReadBuffer read,
                GraphFacts* facts) {
  const Graph& graph = *program.graph;
  const Node& node = graph.nodes[n];
  std::vector<ConstTensor> held(node.inputs.size());
  std::vector<const ConstTensor*> data(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNoValue || (node.def->sizes->inputs >> i & 1) == 0) continue;
    data[i] = facts->known[IndexOf(v)];
    if (data[i] != nullptr) continue;
    const auto buffer = std::find_if(step.inputs.begin(), step.inputs.end(), [&](BufferId b) {
      return b != kNoBuffer && program.buffers[b].value == v &&
             program.buffers[b].state.layout == Layout::kPlain;
    });
    if (buffer == step.inputs.end())
      return Unsupported(Describe(graph, n), ": input ", i,
                         ", which determines its sizes, is not plain");
    MSRT_ASSIGN_OR_RETURN(held[i], ReadWhole(*buffer, facts->types[IndexOf(v)], read));
    data[i] = &held[i];
  }
  return PropagateSized(graph, n, data, facts);
}

// A candidate of several nodes is sized as a whole: no size inside depends on data that the
// candidate itself computes (OfferedGraph::CanBindAtOnce).
Status SizeStep(const Program& program, const Evaluator& evaluator, const Step& step,
                ReadBuffer read, GraphFacts* facts) {
  const Graph& graph = *program.graph;
  for (uint32_t n : step.nodes) {
    MSRT_RETURN_IF_ERROR(IsSizedByData(graph.nodes[n]) ? SizeNode(program, step, n, read, facts)
                                                       : PropagateNode(graph, n, evaluator, facts));
  }
  return OkStatus();
}

// Returns a binding that begins where `previous` ended, with all facts known by then.
std::shared_ptr<Binding> MakeSuccessor(std::shared_ptr<const Binding> previous) {
  auto binding = std::make_shared<Binding>(previous->facts);
  binding->begin_step = previous->end_step;
  binding->locations = previous->locations;
  binding->previous = std::move(previous);
  for (Location& l : binding->locations) {
    if (l.kind == Location::kArena) l.kind = Location::kEarlier;
  }
  return binding;
}

}  // namespace

std::string FailedDelegateName(const Status& status) {
  for (const auto& [key, value] : status.details()) {
    if (key == kFailedDelegate) return value;
  }
  return {};
}

Status SetInputTypes(const Graph& graph, const Module& module, std::span<const Type> inputs,
                     GraphFacts* facts) {
  std::vector<int64_t> symbols(module.symbols.size(), -1);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    MSRT_RETURN_IF_ERROR(CheckInput(module, graph, i, inputs[i], &symbols));
    facts->types[IndexOf(graph.inputs[i])] = inputs[i];
  }
  return OkStatus();
}

Result<std::shared_ptr<const Binding>> Bind(const Program& program, const Module& module,
                                            const Evaluator& evaluator,
                                            const BindRequest& request) {
  const Graph& graph = *program.graph;
  auto binding = std::make_shared<Binding>(GraphFacts(graph));
  MSRT_RETURN_IF_ERROR(SetInputTypes(graph, module, request.inputs, &binding->facts));
  MSRT_RETURN_IF_ERROR(Binder(program, evaluator, request.states, binding.get(), 0)
                           .Run(/*first=*/true, /*sized=*/false));
  return std::shared_ptr<const Binding>(std::move(binding));
}

Result<std::shared_ptr<const Binding>> Continue(
    const Program& program, const Evaluator& evaluator, std::shared_ptr<const Binding> previous,
    uint32_t depth, FunctionRef<Status(BufferId, void* to, size_t bytes)> read) {
  GraphFacts facts = previous->facts;
  const Step& stopped = program.steps[previous->end_step];
  const bool sized = IsSizedByData(*program.graph, stopped);
  MSRT_RETURN_IF_ERROR(ReadSmallInputs(program, stopped, read, &facts));
  if (sized) MSRT_RETURN_IF_ERROR(SizeStep(program, evaluator, stopped, read, &facts));
  std::shared_ptr<Binding> binding = MakeSuccessor(previous);
  binding->facts = std::move(facts);
  MSRT_RETURN_IF_ERROR(Binder(program, evaluator, previous->state_types, binding.get(), depth)
                           .Run(/*first=*/false, sized));
  return std::shared_ptr<const Binding>(std::move(binding));
}

Result<std::shared_ptr<const Binding>> ContinueAfterControl(
    const Program& program, const Evaluator& evaluator, std::shared_ptr<const Binding> previous,
    uint32_t depth, std::span<const Type> results, std::span<const Type> states) {
  const Step& control = program.steps[previous->end_step];
  std::shared_ptr<Binding> binding = MakeSuccessor(std::move(previous));
  for (size_t i = 0; i < control.outputs.size(); ++i) {
    const BufferId b = control.outputs[i];
    if (b == kNoBuffer) continue;
    binding->facts.types[IndexOf(program.buffers[b].value)] = results[i];
    const Buffer& buffer = program.buffers[b];
    binding->locations[b] = {Location::kHeld, buffer.state.device,
                             static_cast<uint32_t>(buffer.held), 0, nullptr};
  }
  ++binding->begin_step;
  MSRT_RETURN_IF_ERROR(Binder(program, evaluator, states, binding.get(), depth)
                           .Run(/*first=*/true, /*sized=*/false));
  return std::shared_ptr<const Binding>(std::move(binding));
}

std::string Print(const Program& program, const Binding& binding) {
  constexpr std::string_view kKinds[] = {"nowhere", "arena", "constant", "input",
                                         "output",  "state", "earlier",  "held"};
  std::string out =
      StrCat("binding of steps ", binding.begin_step, " to ", binding.end_step, ": arena ",
             binding.arena_bytes, " bytes, lower bound ", binding.lower_bound_bytes, "\n");
  for (const BoundStep& s : binding.steps) {
    StrAppend(&out, "  ", s.step, ": ", Describe(program, program.steps[s.step]), "\n");
    for (size_t i = 0; i < s.views.size(); ++i) {
      const Location& l = s.locations[i];
      StrAppend(
          &out, "      ", i < s.input_count ? "reads  " : "writes ", s.views[i].dtype,
          s.views[i].dims, " ", s.views[i].layout, " at ", kKinds[static_cast<size_t>(l.kind)],
          l.device == 0 ? "" : StrCat(" on ", program.devices[l.device]->name()), " ",
          l.kind == Location::kArena || l.kind == Location::kEarlier ? l.offset : l.index, "\n");
    }
  }
  return out;
}

}  // namespace msrt
