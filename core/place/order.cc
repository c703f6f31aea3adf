#include "core/place/order.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "core/base/allocator.h"

namespace msrt {
namespace {

// The memory of devices while steps are reordered. In the original order a device never holds more
// than its peak. Tensors that steps make before their turn add to it until they are read for the
// last time or the turn comes. As long as the peak plus these is within the limit, the remaining
// steps can still be issued in the original order without exceeding it, so the reordering cannot
// get stuck.
class MemoryAhead {
 public:
  MemoryAhead(const OfferedGraph& graph, std::span<const double> rooms, const Placement& placement)
      : steps_(placement.steps),
        devices_(rooms.size()),
        blocks_of_(steps_.size()),
        issued_(steps_.size()) {
    for (size_t d = 0; d < rooms.size(); ++d) devices_[d].limit = rooms[d];
    FindBlocks(graph, placement);
    FindPeaks();
    for (OnDevice& d : devices_) d.limit = d.total <= d.limit ? kNoLimit : d.limit / kArenaSlack;
  }

  bool Allows(uint32_t s) const {
    const OnDevice& device = devices_[steps_[s].device];
    if (s == turn_ || device.limit == kNoLimit) return true;
    double bytes = device.peak + device.ahead;
    for (uint32_t b : blocks_of_[s]) bytes += blocks_[b].issued == 0 ? blocks_[b].bytes : 0;
    return bytes <= device.limit;
  }

  void Issue(uint32_t s) {
    for (uint32_t b : blocks_of_[s]) {
      Block& block = blocks_[b];
      if (block.issued == 0 && s != turn_) {
        block.made_ahead_by = s;
        devices_[block.device].ahead += block.bytes;
      }
      if (++block.issued == block.users) EndLead(&block);
    }
    issued_[s] = true;
    for (; turn_ < steps_.size() && issued_[turn_]; ++turn_) {
      for (uint32_t b : blocks_of_[turn_]) {
        if (blocks_[b].made_ahead_by == turn_) EndLead(&blocks_[b]);
      }
    }
  }

 private:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  static constexpr uint32_t kNoStep = UINT32_MAX;
  struct OnDevice {
    double limit = kNoLimit, total = 0, peak = 0, ahead = 0;
  };
  // The memory of a value on a device in one layout, from the first step that makes or wants it
  // there to the last.
  struct Block {
    uint16_t device;
    double bytes;
    uint32_t users = 0, issued = 0;  // steps
    uint32_t made_ahead_by = kNoStep;
  };

  void EndLead(Block* block) {
    if (block->made_ahead_by != kNoStep) devices_[block->device].ahead -= block->bytes;
    block->made_ahead_by = kNoStep;
  }

  void FindBlocks(const OfferedGraph& graph, const Placement& placement) {
    std::vector<std::vector<std::pair<TensorState, uint32_t>>> of_value(
        graph.graph().value_count());
    const auto find = [&](ValueId v, TensorState state) {
      for (const auto& [there, block] : of_value[IndexOf(v)]) {
        if (there == state) return block;
      }
      // Loop-carried values have their own memory for the whole run.
      const bool kept = state.layout == Layout::kPlain &&
                        std::find(placement.device_values.begin(), placement.device_values.end(),
                                  std::pair(v, state.device)) != placement.device_values.end();
      const auto block = static_cast<uint32_t>(blocks_.size());
      blocks_.push_back(
          {state.device,
           kept ? 0 : ArenaBytes(graph.TypicalBytes(v)[static_cast<size_t>(state.layout)])});
      of_value[IndexOf(v)].emplace_back(state, block);
      return block;
    };
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      const Placement::Step& step = steps_[s];
      if (devices_[step.device].limit == kNoLimit) continue;
      const CandidateBorder border = graph.BorderOf(step.nodes);
      if (step.candidate == nullptr) {  // a view shares the memory of its source
        const TensorState plain{step.device, Layout::kPlain};
        const uint32_t block = find(border.inputs[0], plain);
        of_value[IndexOf(border.outputs[0])].emplace_back(plain, block);
        Use(s, block);
        continue;
      }
      const auto use = [&](const std::vector<ValueId>& values, const std::vector<Layout>& layouts) {
        for (size_t i = 0; i < values.size(); ++i) {
          if (values[i] == kNoValue || graph.graph().value(values[i]).constant != nullptr) continue;
          Use(s, find(values[i], {step.device, layouts[i]}));
        }
      };
      use(border.inputs, step.candidate->input_layouts);
      use(border.outputs, step.candidate->output_layouts);
    }
  }

  void Use(uint32_t s, uint32_t block) {
    std::vector<uint32_t>& blocks = blocks_of_[s];
    if (std::find(blocks.begin(), blocks.end(), block) != blocks.end()) return;
    blocks.push_back(block);
    ++blocks_[block].users;
  }

  void FindPeaks() {
    std::vector<double> live(devices_.size());
    std::vector<uint32_t> used(blocks_.size());
    for (const std::vector<uint32_t>& blocks : blocks_of_) {
      for (uint32_t b : blocks) {
        const Block& block = blocks_[b];
        if (used[b]++ > 0) continue;
        live[block.device] += block.bytes;
        devices_[block.device].total += block.bytes;
        devices_[block.device].peak = std::max(devices_[block.device].peak, live[block.device]);
      }
      for (uint32_t b : blocks) {
        if (used[b] == blocks_[b].users) live[blocks_[b].device] -= blocks_[b].bytes;
      }
    }
  }

  const std::vector<Placement::Step>& steps_;
  std::vector<OnDevice> devices_;
  std::vector<Block> blocks_;
  std::vector<std::vector<uint32_t>> blocks_of_;  // by step; empty if its device has no limit
  std::vector<bool> issued_;                      // by step
  uint32_t turn_ = 0;                             // the first step that is not issued
};

class StepOrder {
 public:
  StepOrder(const OfferedGraph& graph, std::span<const double> rooms, const Placement& placement)
      : graph_(graph.graph()),
        steps_(placement.steps),
        memory_(graph, rooms, placement),
        followers_(steps_.size()),
        missing_(steps_.size()),
        position_(steps_.size(), kNotYet),
        sources_(steps_.size()),
        on_device_(rooms.size()),
        waited_(rooms.size()) {
    FindDependencies();
  }

  // Returns the order as indices into the placement's steps.
  std::vector<uint32_t> Run() {
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      if (missing_[s] == 0) MakeReady(s);
    }
    std::vector<uint32_t> order;
    order.reserve(steps_.size());
    while (order.size() < steps_.size()) {
      const uint32_t s = TakeNext();
      position_[s] = static_cast<uint32_t>(order.size());
      order.push_back(s);
      for (uint32_t f : followers_[s]) {
        if (--missing_[f] == 0) MakeReady(f);
      }
    }
    return order;
  }

 private:
  static constexpr uint32_t kNotYet = UINT32_MAX;
  using Earliest = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;

  void FindDependencies() {
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> maker(graph_.value_count(), kNone);
    uint32_t last_effect = kNone;
    const auto depend = [&](uint32_t s, uint32_t on) {
      if (on == kNone || on == s) return;
      std::vector<uint32_t>& sources = sources_[s];
      if (std::find(sources.begin(), sources.end(), on) != sources.end()) return;
      sources.push_back(on);
      followers_[on].push_back(s);
      ++missing_[s];
    };
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      for (uint32_t n : steps_[s].nodes) {
        for (ValueId v : graph_.nodes[n].outputs) {
          if (v != kNoValue) maker[IndexOf(v)] = s;
        }
      }
    }
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      bool has_effect = false;
      for (uint32_t n : steps_[s].nodes) {
        const Node& node = graph_.nodes[n];
        has_effect |= !IsPure(node);
        for (ValueId v : node.inputs) {
          if (v != kNoValue) depend(s, maker[IndexOf(v)]);
        }
      }
      if (!has_effect) continue;
      depend(s, last_effect);
      last_effect = s;
    }
  }

  void MakeReady(uint32_t s) {
    (steps_[s].device != 0 ? on_device_[steps_[s].device]
     : Waits(s)            ? host_that_waits_
                           : host_)
        .push(s);
  }

  // Whether the step needs a value that a device may not have finished. A wait covers all steps
  // issued to the device before.
  bool Waits(uint32_t s) const {
    return std::any_of(sources_[s].begin(), sources_[s].end(), [&](uint32_t on) {
      const uint16_t device = steps_[on].device;
      return device != 0 && position_[on] >= waited_[device];
    });
  }

  uint32_t TakeNext() {
    Earliest* next = nullptr;
    for (Earliest& ready : on_device_) {
      if (ready.empty() || !memory_.Allows(ready.top())) continue;
      if (next == nullptr || ready.top() < next->top()) next = &ready;
    }
    if (next == nullptr) next = host_.empty() ? &host_that_waits_ : &host_;
    MSRT_CHECK(!next->empty());  // the original order is valid, and its next step is
                                 // always allowed
    const uint32_t s = next->top();
    next->pop();
    if (next == &host_that_waits_) NoteWaits(s);
    memory_.Issue(s);
    return s;
  }

  void NoteWaits(uint32_t s) {
    for (uint32_t on : sources_[s]) {
      const uint16_t device = steps_[on].device;
      if (device != 0) waited_[device] = std::max(waited_[device], position_[on] + 1);
    }
  }

  const Graph& graph_;
  const std::vector<Placement::Step>& steps_;
  MemoryAhead memory_;
  std::vector<std::vector<uint32_t>> followers_;
  std::vector<uint32_t> missing_;   // by step: number of steps it needs that are not issued yet
  std::vector<uint32_t> position_;  // by step: in the new order
  std::vector<std::vector<uint32_t>> sources_;
  // Steps that could come next.
  std::vector<Earliest> on_device_;
  Earliest host_, host_that_waits_;
  std::vector<uint32_t> waited_;  // by device: all steps before this position are done
};

}  // namespace

double ArenaBytes(double bytes) {
  return std::ceil(bytes / double{kTensorAlignment}) * double{kTensorAlignment};
}

void OrderSteps(const OfferedGraph& graph, std::span<const double> rooms, Placement* placement) {
  const std::vector<uint32_t> order = StepOrder(graph, rooms, *placement).Run();
  std::vector<Placement::Step> steps;
  steps.reserve(order.size());
  for (uint32_t s : order) steps.push_back(std::move(placement->steps[s]));
  placement->steps = std::move(steps);
}

}  // namespace msrt
