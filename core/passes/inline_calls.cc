#include "core/passes/inline_calls.h"

#include <algorithm>
#include <unordered_map>

#include "core/passes/call_graph.h"
#include "core/passes/graph_edit.h"
#include "core/passes/resolve_functions.h"

namespace msrt {
namespace {

// A call costs about as much as this many small kernels.
constexpr size_t kSmallGraphNodes = 8;

bool IsCall(const Node& node) {
  return IsControl(node) && ShapeOfControl(node).kind == ControlKind::kCall;
}

class Inlining {
 public:
  Inlining(const PassContext& context, Module* module)
      : context_(context), module_(*module), calls_(*module), gone_(module->graphs.size()) {}

  bool Run() {
    bool changed = false;
    for (uint32_t g : calls_.callees_first()) {
      if (!gone_[g]) changed = InGraph(g) || changed;
    }
    return changed;
  }

 private:
  bool InGraph(uint32_t g) {
    Graph& graph = module_.graphs[g];
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(), IsCall)) return false;
    const bool entry =
        std::find(module_.entries.begin(), module_.entries.end(), g) != module_.entries.end();
    bool changed = false;
    std::unordered_map<uint32_t, Node> partials;  // by their output
    GraphEdit edit(&graph, entry);
    for (size_t n = 0; n < edit.node_count(); ++n) {
      Node& node = edit.Visit(n);
      if (IsCall(node)) {
        changed = Resolve(partials, &node) || changed;
        if (TryInline(g, node, &edit)) {
          changed = true;
          continue;
        }
      } else if (IsControl(node) && ShapeOfControl(node).kind == ControlKind::kPartial &&
                 node.outputs[0] != kNoValue) {
        partials.emplace(IndexOf(node.outputs[0]), node);
      }
      edit.Keep(std::move(node));
    }
    return changed;
  }

  // Turns Call(Partial(g, a), b) into a call of g with a and b.
  static bool Resolve(const std::unordered_map<uint32_t, Node>& partials, Node* call) {
    if (call->attrs.Find("graph") != nullptr || call->inputs.empty()) return false;
    const auto partial = partials.find(IndexOf(call->inputs[0]));
    if (partial == partials.end()) return false;
    call->attrs.Set("graph", *partial->second.attrs.Find("graph"));
    call->inputs.erase(call->inputs.begin());
    call->inputs.insert(call->inputs.begin(), partial->second.inputs.begin(),
                        partial->second.inputs.end());
    return true;
  }

  bool TryInline(uint32_t g, const Node& call, GraphEdit* edit) {
    const ControlShape shape = ShapeOfControl(call);
    if (shape.graphs.empty() || shape.graphs[0] == g) return false;
    const uint32_t callee = shape.graphs[0];
    // A call that was resolved from a function is not among the sites, but its graph has a fixed
    // signature because of the Partial.
    const bool last = calls_.sites(callee).size() == 1 && !calls_.has_fixed_signature(callee);
    if (!last && !WorthCopying(callee)) return false;
    const size_t before = edit->appended();
    const auto results = edit->Inline(module_.graphs[callee], call.inputs);
    if (!results || !edit->Replace(call, *results)) {
      edit->Undo(before);
      return false;
    }
    if (last) gone_[callee] = true;
    else context_.copying->nodes -= module_.graphs[callee].nodes.size();
    return true;
  }

  bool WorthCopying(uint32_t callee) const {
    const Graph& graph = module_.graphs[callee];
    const size_t nodes = graph.nodes.size();
    return calls_.pure(callee) && nodes <= kSmallGraphNodes && nodes <= context_.copying->nodes &&
           std::none_of(graph.nodes.begin(), graph.nodes.end(), IsControl);
  }

  const PassContext& context_;
  Module& module_;
  const CallGraph calls_;
  std::vector<bool> gone_;  // by graph: it is no longer called
};

}  // namespace

Result<bool> InlineCalls(const PassContext& context, Module* module) {
  CopyBudget own;
  PassContext with_budget = context;
  if (with_budget.copying == nullptr) with_budget.copying = &own;
  const bool removed = RemoveUncalledGraphs(module), resolved = ResolveFunctions(module);
  return Inlining(with_budget, module).Run() || removed || resolved;
}

}  // namespace msrt
