#include "core/compile/reachable_graphs.h"

#include <algorithm>
#include <deque>

#include "core/delegate/passed_state.h"
#include "ops/control.h"

namespace msrt {
namespace {

std::vector<Dims> TypicalDims(const Graph& graph, const CompileOptions& options) {
  std::vector<Dims> dims;
  for (ValueId v : graph.inputs) {
    const auto it = std::find_if(options.typical.begin(), options.typical.end(),
                                 [&](const auto& t) { return t.first == graph.value(v).name; });
    dims.push_back(it == options.typical.end() ? graph.value(v).type.dims : it->second);
  }
  return dims;
}

// Queues the graphs that a node calls, with the dims of their arguments at typical shapes where
// those are known.
void AddCallees(const Module& module, const OfferedGraph& offered, const Node& node,
                std::deque<ReachableGraph>* queue) {
  std::vector<GraphCall> calls;
  if (auto typical = CallsOf(node, [&](ValueId v) { return offered.typical().types[IndexOf(v)]; });
      typical.ok()) {
    calls = *std::move(typical);
  } else {  // typical shapes are guesses: a loop over one may not even slice
    for (const uint32_t graph : ShapeOfControl(node).graphs) calls.push_back({graph, "", {}});
  }
  for (const GraphCall& call : calls) {
    const Graph& callee = module.graphs[call.graph];
    std::vector<Dims> dims;
    for (size_t i = 0; i < callee.inputs.size(); ++i) {
      const Type& declared = callee.value(callee.inputs[i]).type;
      const bool fits = i < call.arguments.size() && call.arguments[i].concrete() &&
                        MergeTypes(declared, call.arguments[i]).ok();
      dims.push_back(fits ? call.arguments[i].dims : declared.dims);
    }
    queue->push_back({call.graph, std::move(dims), nullptr});
  }
}

// Returns the time that a thread team saves in one run of the graph at typical shapes, within a
// factor of two and without the time to wake it. Negative if handing work to several threads costs
// more than sharing it gains.
double SecondsSaved(const OfferedGraph& graph, int threads) {
  constexpr double kEfficiency = 0.4;        // of small matrix products and of loops
  constexpr double kHandOverSeconds = 4e-6;  // for one step, both ways
  const Machine core = TypicalMachine(1);
  double seconds = 0;
  for (size_t n = 0; n < graph.node_count(); ++n) {
    const msrt_node_view& node = graph.node(n);
    const double alone = std::max(node.flops / (kEfficiency * core.flops_per_second),
                                  node.bytes / core.bytes_per_second);
    seconds += alone * (1 - 1.0 / threads) - kHandOverSeconds;
  }
  return seconds;
}

}  // namespace

Status WithGraphName(Status status, const Module& module, uint32_t graph) {
  if (module.graphs.size() == 1) return status;
  return std::move(status).Within(StrCat("graph ", graph, " '", module.graphs[graph].name, "'"));
}

Result<ReachableGraphs> FindReachableGraphs(const CompiledModel& model) {
  const Module& module = model.module;
  ReachableGraphs reachable;
  std::vector<bool> seen(module.graphs.size());
  std::deque<ReachableGraph> queue;
  const auto passed = module.states.empty()
                          ? std::vector<std::vector<int64_t>>(module.graphs.size())
                          : FindPassedSlots(module);
  for (uint32_t entry : module.entries)
    queue.push_back({entry, TypicalDims(module.graphs[entry], model.options), nullptr});
  for (; !queue.empty(); queue.pop_front()) {
    ReachableGraph& next = queue.front();
    if (seen[next.graph]) continue;
    seen[next.graph] = true;
    auto offered = OfferedGraph::Make(module.graphs[next.graph], *model.environment->evaluator,
                                      next.typical, &module, passed[next.graph]);
    if (!offered.ok()) return WithGraphName(std::move(offered).status(), module, next.graph);
    next.offered = *std::move(offered);
    reachable.seconds_saved =
        std::max(reachable.seconds_saved,
                 SecondsSaved(*next.offered, model.environment->parallel->threads()));
    reachable.graphs.push_back(std::move(next));
    for (const Node& node : module.graphs[reachable.graphs.back().graph].nodes) {
      if (IsControl(node)) AddCallees(module, *reachable.graphs.back().offered, node, &queue);
    }
  }
  return reachable;
}

bool InputsAreKnown(const CompiledModel& model) {
  return std::all_of(model.module.entries.begin(), model.module.entries.end(), [&](uint32_t entry) {
    const std::vector<Dims> typical = TypicalDims(model.module.graphs[entry], model.options);
    return std::all_of(typical.begin(), typical.end(),
                       [](const Dims& dims) { return dims.known(); });
  });
}

}  // namespace msrt
