#include "core/place/order.h"

#include <algorithm>
#include <array>
#include <queue>

namespace msrt {
namespace {

class StepOrder {
 public:
  StepOrder(const PlacedGraph& graph, const Placement& placement)
      : graph_(graph.graph()),
        steps_(placement.steps),
        followers_(steps_.size()),
        missing_(steps_.size()),
        position_(steps_.size(), kNotYet),
        sources_(steps_.size()) {
    FindDependencies();
  }

  // Indices into the placement's steps.
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
  enum Kind : uint8_t { kDevice, kHost, kHostThatWaits, kKinds };
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
        has_effect |= node.def == nullptr || node.def->effect != Effect::kNone;
        for (ValueId v : node.inputs) {
          if (v != kNoValue) depend(s, maker[IndexOf(v)]);
        }
      }
      if (!has_effect) continue;
      depend(s, last_effect);
      last_effect = s;
    }
  }

  void MakeReady(uint32_t s) { ready_[steps_[s].device != 0 ? kDevice : Waits(s) ? kHostThatWaits : kHost].push(s); }

  // Whether it needs what a device may still be working on. A wait covers all that the device was given before.
  bool Waits(uint32_t s) const {
    return std::any_of(sources_[s].begin(), sources_[s].end(), [&](uint32_t on) {
      const uint16_t device = steps_[on].device;
      return device != 0 && (device >= waited_.size() || position_[on] >= waited_[device]);
    });
  }

  uint32_t TakeNext() {
    for (Kind kind : {kDevice, kHost, kHostThatWaits}) {
      if (ready_[kind].empty()) continue;
      const uint32_t s = ready_[kind].top();
      ready_[kind].pop();
      if (kind == kHostThatWaits) NoteWaits(s);
      return s;
    }
    MSRT_CHECK(false);  // nodes are in an order in which they can run
    return 0;
  }

  void NoteWaits(uint32_t s) {
    for (uint32_t on : sources_[s]) {
      const uint16_t device = steps_[on].device;
      if (device == 0) continue;
      if (waited_.size() <= device) waited_.resize(device + size_t{1});
      waited_[device] = std::max(waited_[device], position_[on] + 1);
    }
  }

  const Graph& graph_;
  const std::vector<Placement::Step>& steps_;
  std::vector<std::vector<uint32_t>> followers_;
  std::vector<uint32_t> missing_;   // by step: how many it needs are not given out yet
  std::vector<uint32_t> position_;  // by step: in the new order
  std::vector<std::vector<uint32_t>> sources_;
  std::array<Earliest, kKinds> ready_;
  std::vector<uint32_t> waited_;  // by device: everything before this position is done by now
};

}  // namespace

void OrderSteps(const PlacedGraph& graph, Placement* placement) {
  const std::vector<uint32_t> order = StepOrder(graph, *placement).Run();
  std::vector<Placement::Step> steps;
  steps.reserve(order.size());
  for (uint32_t s : order) steps.push_back(std::move(placement->steps[s]));
  placement->steps = std::move(steps);
}

}  // namespace msrt
