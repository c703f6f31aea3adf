#include "core/delegate/passed_state.h"

#include <map>

#include "ops/control.h"

namespace msrt {
namespace {

constexpr int64_t kNoSlot = -1, kNotCalled = -2;

class PassedSlots {
 public:
  explicit PassedSlots(const Module& module) : module_(module) {
    for (const Graph& graph : module.graphs) slots_.emplace_back(graph.inputs.size(), kNotCalled);
    for (const uint32_t entry : module.entries) slots_[entry].assign(slots_[entry].size(), kNoSlot);
  }

  std::vector<std::vector<int64_t>> Find() {
    // A slot passed on by one graph more is found in each round; each changes an input at most
    // twice, so this ends.
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t g = 0; g < module_.graphs.size(); ++g) changed = PassFrom(g) || changed;
    }
    for (std::vector<int64_t>& inputs : slots_) {
      for (int64_t& slot : inputs) slot = std::max(slot, kNoSlot);
    }
    return std::move(slots_);
  }

 private:
  bool PassFrom(uint32_t g) {
    const Graph& graph = module_.graphs[g];
    std::map<ValueId, int64_t> known;
    for (size_t i = 0; i < graph.inputs.size(); ++i) known[graph.inputs[i]] = slots_[g][i];
    bool changed = false;
    for (const Node& node : graph.nodes) {
      if (node.def != nullptr && node.def->effect == Effect::kState && !node.outputs.empty())
        known[node.outputs[0]] = std::get<int64_t>(*node.attrs.Find("slot"));
      if (!IsControl(node)) continue;
      const ControlShape shape = ShapeOfControl(node);
      for (const uint32_t callee : shape.graphs)
        changed = PassTo(callee, node, shape, known) || changed;
    }
    return changed;
  }

  // The captured values are the last inputs of the callee.
  bool PassTo(uint32_t callee, const Node& node, const ControlShape& shape,
              const std::map<ValueId, int64_t>& known) {
    std::vector<int64_t>& inputs = slots_[callee];
    const bool direct = shape.kind != ControlKind::kPartial;
    const size_t from = std::min(shape.captured_from(), node.inputs.size());
    const size_t captured = direct ? node.inputs.size() - from : 0;
    bool changed = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      int64_t slot = kNoSlot;
      if (i + captured >= inputs.size()) {
        const auto it = known.find(node.inputs[from + i + captured - inputs.size()]);
        if (it != known.end()) slot = it->second;
      }
      changed = Meet(slot, &inputs[i]) || changed;
    }
    return changed;
  }

  static bool Meet(int64_t slot, int64_t* at) {
    const int64_t before = *at;
    if (slot == kNotCalled || *at == kNoSlot) return false;
    *at = *at == kNotCalled || *at == slot ? slot : kNoSlot;
    return *at != before;
  }

  const Module& module_;
  std::vector<std::vector<int64_t>> slots_;
};

}  // namespace

std::vector<std::vector<int64_t>> FindPassedSlots(const Module& module) {
  return PassedSlots(module).Find();
}

}  // namespace msrt
