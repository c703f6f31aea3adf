#include "core/place/owned.h"

#include <algorithm>
#include <unordered_map>

#include "core/place/owned_types.h"
#include "ops/control.h"

namespace msrt {
namespace {

// Walks the graphs inside of a control node and records the first reason why it cannot be owned.
class InsideWalker {
 public:
  void Enter(const OfferedGraph& caller, const Node& node, int level) {
    for (const uint32_t number : ShapeOfControl(node).graphs) {
      const OfferedGraph* callee = caller.callee(number);
      if (callee == nullptr) {
        Note(StrCat("graph ", number, " that it calls is not known"));
        continue;
      }
      const auto [it, first] = active_.try_emplace(callee, true);
      if (!first && it->second)
        Note(StrCat("graph '", callee->graph().name, "' inside calls itself"));
      if (!first) continue;
      if (level == kMaxOwnedLevels) {
        Note(StrCat("its graphs call each other more than ", kMaxOwnedLevels, " levels deep"));
        continue;
      }
      graphs.push_back(callee);
      for (const Node& inner : callee->graph().nodes) Look(*callee, inner, level);
      active_[callee] = false;
    }
  }

  std::vector<const OfferedGraph*> graphs;
  std::string wrong;  // the first reason

 private:
  void Look(const OfferedGraph& graph, const Node& node, int level) {
    if (IsControl(node)) return Enter(graph, node, level + 1);
    if (node.def == nullptr || IsPure(node)) return;
    Note(StrCat(OpName(node), " '", node.name, "' inside has effects, which are the session's"));
  }
  void Note(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }
  std::unordered_map<const OfferedGraph*, bool>
      active_;  // visited graphs; true while a graph is being walked
};

}  // namespace

std::vector<const OfferedGraph*> GraphsInside(const OfferedGraph& graph, const Node& node) {
  InsideWalker walker;
  walker.Enter(graph, node, 1);
  return std::move(walker.graphs);
}

std::string WhyNotOwned(const OfferedGraph& graph, const Node& node) {
  const auto type_of = [&](ValueId v) -> const Type& { return graph.graph().value(v).type; };
  const auto no_tensor = [&](ValueId v) { return v != kNoValue && !type_of(v).is_tensor(); };
  const auto open = [&](ValueId v) { return v != kNoValue && !type_of(v).concrete(); };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), no_tensor) ||
      std::any_of(node.outputs.begin(), node.outputs.end(), no_tensor)) {
    return "it takes or returns a list or a function";
  }
  InsideWalker walker;
  walker.Enter(graph, node, 1);
  if (!walker.wrong.empty()) return std::move(walker.wrong);
  const bool sized =
      std::none_of(node.outputs.begin(), node.outputs.end(), open) || SizesFollow(graph, node);
  return sized ? "" : "the sizes of its outputs do not follow from the sizes of its inputs";
}

}  // namespace msrt
