#include "core/program/state_use.h"

#include <algorithm>
#include <bit>

namespace msrt {
namespace {

// Bits of all graphs and of all calls together. Beyond, the analysis is given up: a file cannot
// make it large.
constexpr size_t kMaxBits = size_t{1} << 28;
// The same after this many rounds. One round covers a chain of calls in either direction, so only
// recursion through many graphs needs more than a few.
constexpr int kMaxRounds = 16;

size_t SlotOf(const Node& node) {
  return static_cast<size_t>(std::get<int64_t>(*node.attrs.Find("slot")));
}

// A call of a function value.
bool CallsFunction(const ControlShape& shape) {
  return shape.kind == ControlKind::kCall && shape.graphs.empty();
}

}  // namespace

StateUse::StateUse(const Module& module)
    : slots_(module.states.size()),
      row_((slots_ + 63) / 64),
      called_(module.graphs.size()),
      callees_(module.graphs.size()) {
  size_t rows = module.graphs.size();
  for (const Graph& graph : module.graphs)
    rows += static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), IsControl));
  if (rows <= kMaxBits / 64 / std::max<size_t>(row_, 1)) {
    reads_.resize(row_ * module.graphs.size());
    writes_.resize(reads_.size());
  }
  FindDirect(module);
  if (!unbounded()) AddCallees();
}

void StateUse::ForEach(const Bits& bits, uint32_t graph, FunctionRef<void(size_t)> visit) const {
  if (bits.empty()) {
    for (size_t slot = 0; slot < slots_; ++slot) visit(slot);
    return;
  }
  for (size_t w = 0; w < row_; ++w) {
    for (uint64_t rest = bits[graph * row_ + w]; rest != 0; rest &= rest - 1)
      visit(64 * w + static_cast<size_t>(std::countr_zero(rest)));
  }
}

void StateUse::FindDirect(const Module& module) {
  std::vector<uint32_t> call_functions;
  for (uint32_t g = 0; g < module.graphs.size(); ++g) {
    for (const Node& node : module.graphs[g].nodes) {
      if (node.def != nullptr && node.def->effect == Effect::kState) {
        const size_t slot = SlotOf(node);
        const bool writes = node.outputs.empty();
        Bits& bits = writes ? writes_ : reads_;
        if (!bits.empty()) bits[g * row_ + slot / 64] |= uint64_t{1} << slot % 64;
      }
      if (!IsControl(node)) continue;
      const ControlShape shape = ShapeOfControl(node);
      for (const uint32_t callee : shape.graphs) called_[callee] = true;
      std::vector<uint32_t>& to = shape.kind == ControlKind::kPartial ? functions_ : callees_[g];
      to.insert(to.end(), shape.graphs.begin(), shape.graphs.end());
      if (CallsFunction(shape)) call_functions.push_back(g);
    }
  }
  std::sort(functions_.begin(), functions_.end());
  functions_.erase(std::unique(functions_.begin(), functions_.end()), functions_.end());
  for (const uint32_t g : call_functions)
    callees_[g].insert(callees_[g].end(), functions_.begin(), functions_.end());
}

// Adds what callees touch to their callers until nothing changes.
void StateUse::AddCallees() {
  const auto count = static_cast<uint32_t>(callees_.size());
  for (int round = 0; round < kMaxRounds; ++round) {
    bool changed = false;
    const auto visit = [&](uint32_t g) {
      for (const uint32_t callee : callees_[g]) changed |= Merge(callee, g);
    };
    for (uint32_t g = 0; g < count; ++g) visit(g);
    for (uint32_t g = count; g-- > 0;) visit(g);
    if (!changed) return;
  }
  reads_.clear();
  writes_.clear();
}

bool StateUse::Merge(uint32_t callee, uint32_t caller) {
  bool changed = false;
  for (Bits* bits : {&reads_, &writes_}) {
    for (size_t w = 0; w < row_; ++w) {
      uint64_t& to = (*bits)[caller * row_ + w];
      const uint64_t merged = to | (*bits)[callee * row_ + w];
      changed |= merged != to;
      to = merged;
    }
  }
  return changed;
}

std::span<const uint32_t> StateUse::CalledBy(const ControlShape& control) const {
  if (control.kind == ControlKind::kPartial) return {};
  return CallsFunction(control) ? std::span<const uint32_t>(functions_) : control.graphs;
}

// ---- access -------------------------------------------------------------------------------------

namespace {

constexpr uint32_t kNever = UINT32_MAX;

class AccessPlanner {
 public:
  AccessPlanner(const Module& module, const StateUse& use, uint32_t graph, Program* program)
      : module_(module),
        use_(use),
        graph_(graph),
        program_(*program),
        readers_(module.states.size()),
        writers_(module.states.size()),
        in_slot_(module.states.size()),
        made_(program->buffers.size(), kNever),
        producer_(program->buffers.size(), kNever),
        reads_(program->buffers.size()),
        last_use_(program->buffers.size()),
        is_output_(program->buffers.size()) {}

  void Run() {
    for (const BufferId b : program_.output_buffers) is_output_[program_.buffers[b].root] = true;
    for (uint32_t s = 0; s < program_.steps.size(); ++s) Visit(s);
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      Step& step = program_.steps[s];
      if (step.kind == StepKind::kStateRead) step.access = AccessOfRead(s, step);
    }
    KeepTransfers();
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      if (program_.steps[s].kind == StepKind::kStateWrite) UpdateOnDevice(s);
    }
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      Step& step = program_.steps[s];
      if (step.kind != StepKind::kStateWrite || !CanMakeInSlot(s, step)) continue;
      const BufferId value = RootOf(step.inputs[0]);
      program_.state_updates.push_back({made_[value], step.slot, value});
      in_slot_[step.slot].push_back(value);
      made_[value] = kNever;  // one slot only
    }
    DropCopies();
    std::sort(program_.state_updates.begin(), program_.state_updates.end(),
              [](const StateUpdate& a, const StateUpdate& b) { return a.made < b.made; });
    ListSlots();
  }

 private:
  BufferId RootOf(BufferId b) const { return program_.buffers[b].root; }
  static bool IsState(const Step& step) {
    return step.kind == StepKind::kStateRead || step.kind == StepKind::kStateWrite;
  }

  // Records lifetimes, and the slots that the step may touch.
  void Visit(uint32_t s) {
    Step& step = program_.steps[s];
    for (const BufferId b : step.inputs) {
      if (b == kNoBuffer) continue;
      last_use_[RootOf(b)] = s;
      ++reads_[RootOf(b)];
    }
    for (const BufferId b : step.outputs) {
      if (b == kNoBuffer) continue;
      producer_[b] = s;
      last_use_[RootOf(b)] = s;
      const TensorState state = program_.buffers[b].state;
      const bool computes = step.kind == StepKind::kKernel || step.kind == StepKind::kConvert;
      const bool on_host = computes && step.queue == kHostQueue && state == kHostPlain;
      const bool on_device =
          step.kind == StepKind::kKernel && IsOnDevice(step.queue) && state.device == step.queue;
      if (on_host || on_device) made_[b] = s;
    }
    if (IsState(step)) {
      step.slot = static_cast<uint32_t>(SlotOf(program_.graph->nodes[step.node]));
      (step.kind == StepKind::kStateRead ? readers_ : writers_)[step.slot].push_back(s);
    }
    if (step.control == nullptr) return;
    if (use_.unbounded()) return calls_.push_back(s);
    const auto add = [s](std::vector<uint32_t>* steps) {
      if (steps->empty() || steps->back() != s) steps->push_back(s);
    };
    for (const uint32_t callee : use_.CalledBy(*step.control)) {
      use_.ForEachRead(callee, [&](size_t slot) { add(&readers_[slot]); });
      use_.ForEachWritten(callee, [&](size_t slot) { add(&writers_[slot]); });
    }
  }

  // Whether one of the ascending steps, or a call that may touch every slot, is in [begin, end).
  bool AnyIn(const std::vector<uint32_t>& steps, uint32_t begin, uint32_t end) const {
    const auto any = [&](const std::vector<uint32_t>& list) {
      const auto it = std::lower_bound(list.begin(), list.end(), begin);
      return it != list.end() && *it < end;
    };
    return any(steps) || any(calls_);
  }

  StateAccess AccessOfRead(uint32_t s, const Step& step) const {
    const BufferId b = step.outputs[0];
    if (is_output_[b]) return StateAccess::kCopy;
    if (!AnyIn(writers_[step.slot], s + 1, last_use_[b] + 1)) return StateAccess::kInPlace;
    // A write puts the new value beside the one from before the run, if the role demands that.
    const bool first = use_.BeginsRuns(graph_) && !AnyIn(writers_[step.slot], 0, s);
    return first && !IsUpdatedInPlace(module_.states[step.slot].role) ? StateAccess::kBefore
                                                                      : StateAccess::kCopy;
  }

  static bool IsTransfer(const Step& step) {
    return step.kind == StepKind::kConvert || step.kind == StepKind::kCopyToDevice ||
           step.kind == StepKind::kCopyPeer;
  }

  void KeepTransfers() {
    std::vector<uint32_t> read_by(program_.buffers.size(), kNever);  // the state read
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      Step& step = program_.steps[s];
      if (step.kind == StepKind::kStateRead && step.access != StateAccess::kCopy &&
          module_.states[step.slot].role != StateRole::kCache)
        read_by[step.outputs[0]] = s;
      if (!IsTransfer(step)) continue;
      const BufferId from = step.inputs[0], to = step.outputs[0];
      const uint32_t r = read_by[from];
      if (r == kNever || program_.buffers[from].value != program_.buffers[to].value ||
          is_output_[to])
        continue;
      const Step& read = program_.steps[r];
      // The value from before the run stays until its end.
      if (read.access == StateAccess::kInPlace &&
          AnyIn(writers_[read.slot], r + 1, last_use_[to] + 1))
        continue;
      step.is_kept = true;
      step.slot = read.slot, step.access = read.access;
      read_by[to] = r;
      in_slot_[read.slot].push_back(to);
    }
  }

  // If a device's kernel makes the value that the step writes, and nothing but the step reads it on
  // the host, the value is made in the slot's memory on the device instead of being copied.
  void UpdateOnDevice(uint32_t s) {
    Step& write = program_.steps[s];
    const BufferId copied = write.inputs[0];
    const uint32_t copy = producer_[copied];
    if (copy == kNever || program_.steps[copy].kind != StepKind::kCopyToHost ||
        RootOf(copied) != copied || reads_[copied] != 1 || is_output_[copied])
      return;
    const BufferId value = program_.steps[copy].inputs[0];
    const Type& type = program_.graph->value(program_.buffers[value].value).type;
    const Type& slot = module_.states[write.slot].type;
    // Sizes that a run decides may need other memory.
    if (RootOf(value) != value || !type.concrete() || !slot.concrete() || type.dims != slot.dims)
      return;
    last_use_[value] = std::max(last_use_[value], s);
    if (!CanMakeInSlot(s, write.slot, value)) return;
    write.inputs[0] = value;
    program_.state_updates.push_back({made_[value], write.slot, value});
    in_slot_[write.slot].push_back(value);
    made_[value] = kNever;  // one slot only
    dropped_.push_back(copy);
  }

  void DropCopies() {
    if (dropped_.empty()) return;
    std::sort(dropped_.begin(), dropped_.end());
    for (StateUpdate& u : program_.state_updates) {
      const auto before = std::lower_bound(dropped_.begin(), dropped_.end(), u.made);
      u.made -= static_cast<uint32_t>(before - dropped_.begin());
    }
    std::vector<Step> kept;
    kept.reserve(program_.steps.size() - dropped_.size());
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      if (!std::binary_search(dropped_.begin(), dropped_.end(), s))
        kept.push_back(std::move(program_.steps[s]));
    }
    program_.steps = std::move(kept);
  }

  bool CanMakeInSlot(uint32_t write, const Step& step) const {
    const BufferId value = RootOf(step.inputs[0]);
    return program_.buffers[value].state == kHostPlain && CanMakeInSlot(write, step.slot, value);
  }

  // Whether the value can be made in the slot's memory by its producer.
  bool CanMakeInSlot(uint32_t write, size_t slot, BufferId value) const {
    if (!IsUpdatedInPlace(module_.states[slot].role)) return false;
    const uint32_t made = made_[value];
    if (made == kNever || is_output_[value]) return false;
    return !AnyIn(readers_[slot], made, write) && !AnyIn(writers_[slot], made, write) &&
           !AnyIn(writers_[slot], write + 1, last_use_[value] + 1) &&
           OldValueIsDead(made, value, slot);
  }

  // Whether no value in the slot's memory, read in place or made there, is used while `value` is
  // made or later, except as the input that the producer may overwrite.
  bool OldValueIsDead(uint32_t made, BufferId value, size_t slot) const {
    const auto is_dead = [&](BufferId old) {
      return last_use_[old] < made ||
             (last_use_[old] == made && MayOverwrite(program_.steps[made], old, value));
    };
    for (const uint32_t r : readers_[slot]) {
      const Step& read = program_.steps[r];
      if (r >= made) break;
      if (read.kind == StepKind::kStateRead && read.access != StateAccess::kCopy &&
          !is_dead(read.outputs[0]))
        return false;
    }
    return std::all_of(in_slot_[slot].begin(), in_slot_[slot].end(), is_dead);
  }

  // Whether the step may write `to` over `from`, which it reads once.
  bool MayOverwrite(const Step& step, BufferId from, BufferId to) const {
    const auto uses = std::count_if(step.inputs.begin(), step.inputs.end(), [&](BufferId b) {
      return b != kNoBuffer && RootOf(b) == from;
    });
    return uses == 1 && std::any_of(step.in_place.begin(), step.in_place.end(), [&](const auto& p) {
             return p.first < step.inputs.size() && p.second < step.outputs.size() &&
                    step.inputs[p.first] == from && step.outputs[p.second] == to;
           });
  }

  void ListSlots() {
    std::vector<uint32_t>& slots = program_.state_slots;
    for (const Step& step : program_.steps) {
      if (IsState(step)) slots.push_back(step.slot);
    }
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  }

  const Module& module_;
  const StateUse& use_;
  const uint32_t graph_;
  Program& program_;
  // By slot: the steps that may read or write it, ascending.
  std::vector<std::vector<uint32_t>> readers_, writers_;
  // By slot: values of state_updates so far, and results of kept transfers.
  std::vector<std::vector<BufferId>> in_slot_;
  std::vector<uint32_t> calls_;  // steps that may touch every slot
  // By buffer: the host's step, or the kernel on its own device, that makes it, or kNever.
  std::vector<uint32_t> made_;
  std::vector<uint32_t> producer_;  // by buffer: the step, or kNever
  std::vector<uint32_t> reads_;     // by root buffer: how often steps read it
  std::vector<uint32_t> dropped_;   // copies to the host that are no longer needed
  std::vector<uint32_t> last_use_;  // by root buffer
  std::vector<char> is_output_;     // by root buffer
};

}  // namespace

void PlanStateAccess(const Module& module, const StateUse& use, uint32_t graph, Program* program) {
  if (!module.states.empty()) AccessPlanner(module, use, graph, program).Run();
}

}  // namespace msrt
