#include "tools/msconvert/slow_nodes.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ops/control.h"

namespace msrt {
namespace {

constexpr std::string_view kPlainLoops =
    "reference";                        // the delegate that has a plain loop for every op
constexpr double kWorthTelling = 0.05;  // fraction of the estimated time
constexpr double kSlowSeconds =
    20e-6;  // below it a plain loop is a good choice: no threads have to be started
constexpr size_t kNamedOps = 4;

struct OpShare {
  size_t nodes = 0;
  double seconds = 0;
};

// Returns for each node whether it depends on constants alone, such as weights that are stored
// small. Loading computes it once.
std::vector<bool> FoldedNodes(const Graph& graph) {
  std::vector<bool> constant(graph.value_count()), folded;
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    constant[v] = graph.value(ValueId{v}).constant != nullptr;
  for (const Node& node : graph.nodes) {
    const bool all = !node.inputs.empty() &&
                     std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId v) { return v == kNoValue || constant[IndexOf(v)]; });
    folded.push_back(all);
    for (ValueId v : node.outputs) {
      if (v != kNoValue) constant[IndexOf(v)] = all;
    }
  }
  return folded;
}

// Adds up the plain loops of a graph and of the graphs that it calls.
class SlowNodes {
 public:
  explicit SlowNodes(const ModuleEstimate& estimate)
      : estimate_(estimate), visited_(estimate.graphs.size()) {}

  // `weight` is how often the graph runs in one run of the model.
  void Add(uint32_t number, double weight) {
    const GraphEstimate& graph = estimate_.graphs[number];
    if (visited_[number] || graph.nodes.empty()) return;
    visited_[number] = true;
    const std::vector<Node>& nodes = estimate_.module.graphs[number].nodes;
    const std::vector<bool> folded = FoldedNodes(estimate_.module.graphs[number]);
    for (size_t n = 0; n < nodes.size(); ++n) {
      const NodeExplanation& why = graph.nodes[n];
      if (folded[n]) continue;
      if (why.delegate == kPlainLoops) {
        ++ops_[OpName(nodes[n])].nodes;
        ops_[OpName(nodes[n])].seconds += weight * why.seconds;
      } else if (why.delegate.empty() && IsControl(nodes[n])) {
        AddCallees(nodes[n], weight * why.seconds);
      }
    }
  }

  double seconds() const {
    double sum = 0;
    for (const auto& [op, share] : ops_) sum += share.seconds;
    return sum;
  }

  // Lists the ops that matter, the slowest first.
  std::string Text() const {
    std::vector<std::pair<std::string, OpShare>> sorted(ops_.begin(), ops_.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    size_t nodes = 0;
    std::string names;
    for (size_t i = 0; i < sorted.size() && sorted[i].second.seconds > 0.02 * seconds(); ++i) {
      nodes += sorted[i].second.nodes;
      if (i < kNamedOps)
        StrAppend(&names, i == 0 ? "" : ", ", sorted[i].first, " x", sorted[i].second.nodes);
      if (i == kNamedOps) names += ", ...";
    }
    return StrCat(nodes, nodes == 1 ? " node (" : " nodes (", names, ")");
  }

 private:
  // The estimated time of a control node includes all runs of its graphs.
  void AddCallees(const Node& node, double seconds) {
    const std::vector<uint32_t> graphs = ShapeOfControl(node).graphs;
    double once = 0;
    for (uint32_t g : graphs) once += estimate_.graphs[g].seconds;
    for (uint32_t g : graphs) Add(g, once > 0 ? seconds / once : 0);
  }

  const ModuleEstimate& estimate_;
  std::vector<bool> visited_;
  std::map<std::string, OpShare> ops_;
};

}  // namespace

Result<std::string> SlowNodesWarning(std::shared_ptr<const Environment> environment,
                                     const Module& module, const GivenSizes& typical,
                                     const PassOptions& passes) {
  CompileOptions options;
  options.passes = passes;
  MSRT_ASSIGN_OR_RETURN(const std::vector<Dims> sizes, SizesToRun("--typical", typical, module));
  for (size_t i = 0; i < sizes.size(); ++i)
    options.typical.emplace_back(module.main().value(module.main().inputs[i]).name, sizes[i]);
  MSRT_ASSIGN_OR_RETURN(const ModuleEstimate estimate,
                        EstimateModule(std::move(environment), module, options));
  const uint32_t main = estimate.module.entries[0];
  SlowNodes slow(estimate);
  slow.Add(main, 1);
  const double share =
      estimate.graphs[main].seconds > 0 ? slow.seconds() / estimate.graphs[main].seconds : 0;
  if (share < kWorthTelling || slow.seconds() < kSlowSeconds) return std::string();
  return StrCat(slow.Text(), " will run as plain loops: ", std::lround(100 * std::min(share, 1.0)),
                " % of the estimated time; msrun --explain shows why, and a kernel of your own can "
                "replace them (msrt_kernel_desc)");
}

}  // namespace msrt
