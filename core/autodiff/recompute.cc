#include "core/autodiff/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "ops/node_view.h"
#include "ops/op_def.h"

namespace msrt {
namespace {

// ---- copying ------------------------------------------------------------------------------------

class Recomputing {
 public:
  Recomputing(Graph* graph, size_t forward_nodes) : graph_(*graph), forward_nodes_(forward_nodes) {
    for (const Node& node : graph_.nodes) region_ = std::max(region_, node.region);
  }

  void Run(const RecomputedBlock& block) {
    const std::vector<bool> inner = InnerValues(block);
    const auto is_inner = [&](ValueId v) { return v != kNoValue && inner[IndexOf(v)]; };
    size_t first_use = graph_.nodes.size();
    std::vector<bool> needed(graph_.value_count());
    for (size_t n = graph_.nodes.size(); n-- > forward_nodes_;) {
      for (ValueId v : graph_.nodes[n].inputs) {
        if (!is_inner(v)) continue;
        needed[IndexOf(v)] = true;
        first_use = n;
      }
    }
    std::vector<Node> copies;
    ++region_;
    for (size_t n = block.end_node; n-- > block.first_node;) {
      const Node& node = graph_.nodes[n];
      if (std::none_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId v) { return v != kNoValue && needed[IndexOf(v)]; })) {
        continue;
      }
      for (ValueId v : node.inputs) {
        if (is_inner(v)) needed[IndexOf(v)] = true;
      }
      copies.push_back(node);
    }
    std::reverse(copies.begin(), copies.end());
    std::map<ValueId, ValueId> copy_of;
    const auto current = [&](ValueId v) {
      const auto found = copy_of.find(v);
      return found == copy_of.end() ? v : found->second;
    };
    for (Node& copy : copies) {
      copy.name += "/again";
      copy.region = region_;
      for (ValueId& v : copy.inputs) v = current(v);
      for (ValueId& v : copy.outputs) {
        if (v == kNoValue) continue;
        const ValueId original = v;
        const Value value = graph_.value(v);
        v = graph_.AddValue(StrCat(value.name, "/again"), value.type);
        if (is_inner(original)) copy_of.emplace(original, v);
      }
    }
    for (size_t n = first_use; n < graph_.nodes.size(); ++n) {
      for (ValueId& v : graph_.nodes[n].inputs) v = current(v);
    }
    graph_.nodes.insert(graph_.nodes.begin() + static_cast<ptrdiff_t>(first_use), copies.begin(),
                        copies.end());
  }

 private:
  // By value: whether it is made in the block by a node that may be copied, and used by no forward
  // node after it. Results of the block are kept, since others need them meanwhile.
  std::vector<bool> InnerValues(const RecomputedBlock& block) const {
    std::vector<bool> inner(graph_.value_count());
    for (size_t n = block.first_node; n < block.end_node; ++n) {
      if (!IsPure(graph_.nodes[n])) continue;
      for (ValueId v : graph_.nodes[n].outputs) {
        if (v != kNoValue) inner[IndexOf(v)] = true;
      }
    }
    for (size_t n = block.end_node; n < forward_nodes_; ++n) {
      for (ValueId v : graph_.nodes[n].inputs) {
        if (v != kNoValue) inner[IndexOf(v)] = false;
      }
    }
    for (ValueId v : graph_.outputs) inner[IndexOf(v)] = false;
    return inner;
  }

  Graph& graph_;
  const size_t forward_nodes_;
  uint32_t region_ = 0;
};

// ---- planning -----------------------------------------------------------------------------------

// The links before some position: what is kept of them and what it costs, and the last decision.
struct PlanState {
  double kept_bytes = 0, seconds = 0, peak_bytes = 0;
  size_t position = 0, previous = 0;  // the state before the last decision
  bool recomputed = false;            // the links since then, as one segment
};

// Keeps the states of which no other is at least as good in both numbers.
void KeepBest(double PlanState::*cost, std::vector<PlanState>* states) {
  std::sort(states->begin(), states->end(), [&](const PlanState& a, const PlanState& b) {
    return std::tie(a.kept_bytes, a.*cost) < std::tie(b.kept_bytes, b.*cost);
  });
  double least = std::numeric_limits<double>::infinity();
  std::erase_if(*states, [&](const PlanState& s) {
    if (s.*cost >= least) return true;
    least = s.*cost;
    return false;
  });
}

// Finds the least `cost` (seconds or peak) with a peak of at most `budget` by dynamic programming
// over positions: what follows depends on the bytes kept so far only, so of states with more bytes
// and more cost none is needed.
class ChainPlanner {
 public:
  ChainPlanner(std::span<const ChainLink> links, double budget, double PlanState::*cost)
      : links_(links), budget_(budget), cost_(cost), states_(links.size() + 1) {}

  // Returns false if no plan has a peak within the budget.
  bool Run() {
    states_[0].emplace_back();
    for (size_t p = 0; p < links_.size(); ++p) {
      KeepBest(cost_, &states_[p]);
      for (size_t i = 0; i < states_[p].size(); ++i) Extend(p, i);
    }
    KeepBest(cost_, &states_.back());
    return !states_.back().empty();
  }

  ChainPlan Best() const {
    const auto best = std::min_element(
        states_.back().begin(), states_.back().end(),
        [&](const PlanState& a, const PlanState& b) { return a.*cost_ < b.*cost_; });
    ChainPlan plan{{}, best->seconds, best->peak_bytes};
    size_t end = links_.size();
    for (const PlanState* s = &*best; end != 0;) {
      if (s->recomputed) plan.segments.push_back({s->position, end});
      end = s->position;
      s = &states_[s->position][s->previous];
    }
    std::reverse(plan.segments.begin(), plan.segments.end());
    return plan;
  }

 private:
  void Extend(size_t p, size_t i) {
    const PlanState from = states_[p][i];
    double all = 0, seconds = 0;
    for (size_t end = p + 1; end <= links_.size(); ++end) {
      const ChainLink& last = links_[end - 1];
      all += last.inner_bytes + last.output_bytes;
      seconds += last.seconds;
      const double peak = std::max(from.peak_bytes, from.kept_bytes + all);
      if (peak > budget_) break;
      if (end == p + 1)
        states_[end].push_back({from.kept_bytes + all, from.seconds, peak, p, i, false});
      states_[end].push_back(
          {from.kept_bytes + last.output_bytes, from.seconds + seconds, peak, p, i, true});
    }
  }

  const std::span<const ChainLink> links_;
  const double budget_;
  double PlanState::*const cost_;
  std::vector<std::vector<PlanState>> states_;  // by position
};

// ---- chains in graphs ---------------------------------------------------------------------------

// A rough machine: only the proportion of arithmetic to memory traffic matters for a plan.
constexpr double kFlopsPerSecond = 50e9, kBytesPerSecond = 10e9;

class ChainFinder {
 public:
  ChainFinder(const Graph& graph, size_t forward_nodes)
      : graph_(graph), forward_nodes_(forward_nodes), last_use_(graph.value_count()) {}

  Status Run() {
    MSRT_RETURN_IF_ERROR(FindUses());
    cuts_ = {0};
    links_.emplace_back();
    std::set<ValueId> passing;  // varying values that are made before node n and used from it on
    for (size_t n = 0; n < forward_nodes_; ++n) {
      const Node& node = graph_.nodes[n];
      AddNode(node);
      for (ValueId v : Distinct(node.inputs)) {
        if (last_use_[IndexOf(v)] == n) passing.erase(v);
      }
      for (ValueId v : Distinct(node.outputs)) {
        if (made_[IndexOf(v)] && last_use_[IndexOf(v)] > n) passing.insert(v);
      }
      if (passing.size() != 1 || n + 1 == forward_nodes_) continue;
      CloseLink(*passing.begin(), node);
      cuts_.push_back(n + 1);
    }
    cuts_.push_back(forward_nodes_);
    return OkStatus();
  }

  const std::vector<ChainLink>& links() const { return links_; }
  // The nodes of links [first, end).
  RecomputedBlock NodesOf(const ChainSegment& s) const { return {cuts_[s.first], cuts_[s.end]}; }

 private:
  static std::vector<ValueId> Distinct(std::vector<ValueId> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::erase(values, kNoValue);
    return values;
  }

  // A value counts if it varies with an input: parameters and what follows from them alone exist
  // anyway.
  Status FindUses() {
    made_.resize(graph_.value_count());
    kept_.resize(graph_.value_count());
    std::vector<bool> varies(graph_.value_count());
    for (ValueId v : graph_.inputs) varies[IndexOf(v)] = true;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      bool any = false;
      for (ValueId v : Distinct(node.inputs)) {
        any = any || varies[IndexOf(v)];
        if (n < forward_nodes_) last_use_[IndexOf(v)] = n;
        else kept_[IndexOf(v)] = true;
      }
      if (!any || n >= forward_nodes_) continue;
      for (ValueId v : Distinct(node.outputs)) {
        varies[IndexOf(v)] = made_[IndexOf(v)] = true;
        if (graph_.value(v).type.concrete()) continue;
        return Unsupported("value '", graph_.value(v).name, "' is ", graph_.value(v).type,
                           ": memory can be planned only if all sizes are known");
      }
    }
    return OkStatus();
  }

  void AddNode(const Node& node) {
    ChainLink& link = links_.back();
    if (node.def != nullptr && IsPure(node)) {
      const NodeView view(graph_, node);
      const Cost cost = node.def->cost(view.op());
      link.seconds +=
          cost.flops / kFlopsPerSecond + (cost.bytes_read + cost.bytes_written) / kBytesPerSecond;
    }
    for (ValueId v : Distinct(node.outputs)) {
      if (made_[IndexOf(v)] && kept_[IndexOf(v)])
        link.inner_bytes += static_cast<double>(graph_.value(v).type.bytes());
    }
  }

  // Value `v` passes the cut after `last`: it is the output of the link.
  void CloseLink(ValueId v, const Node& last) {
    ChainLink& link = links_.back();
    link.output_bytes = static_cast<double>(graph_.value(v).type.bytes());
    const bool is_new =
        std::find(last.outputs.begin(), last.outputs.end(), v) != last.outputs.end();
    if (is_new && kept_[IndexOf(v)]) link.inner_bytes -= link.output_bytes;
    links_.emplace_back();
  }

  const Graph& graph_;
  const size_t forward_nodes_;
  std::vector<size_t> last_use_;   // by value: the last forward node that reads it
  std::vector<bool> made_, kept_;  // by value: made by the chain; read by backward nodes
  std::vector<size_t> cuts_;       // links are between neighbours
  std::vector<ChainLink> links_;
};

}  // namespace

Status RecomputeBlocks(Graph* graph, size_t forward_nodes,
                       const std::vector<RecomputedBlock>& blocks) {
  size_t end = 0;
  for (const RecomputedBlock& b : blocks) {
    if (b.first_node < end || b.first_node > b.end_node || b.end_node > forward_nodes ||
        forward_nodes > graph->nodes.size()) {
      return InvalidArgument("nodes ", b.first_node, " to ", b.end_node,
                             " are no block: blocks are in order, do not overlap, and end before "
                             "node ",
                             forward_nodes, ", where gradients begin");
    }
    end = b.end_node;
  }
  Recomputing recomputing(graph, forward_nodes);
  for (const RecomputedBlock& b : blocks) recomputing.Run(b);
  return OkStatus();
}

Result<ChainPlan> PlanChain(std::span<const ChainLink> links, double budget_bytes) {
  ChainPlanner planner(links, budget_bytes, &PlanState::seconds);
  if (planner.Run()) return planner.Best();
  ChainPlanner smallest(links, std::numeric_limits<double>::infinity(), &PlanState::peak_bytes);
  MSRT_CHECK(smallest.Run());
  return LimitExceeded("the values that gradients need do not fit into ", budget_bytes,
                       " bytes: with recomputation they take at least ",
                       smallest.Best().peak_bytes);
}

Result<RecomputePlan> PlanRecomputation(const Graph& graph, size_t forward_nodes,
                                        double budget_bytes, double part) {
  ChainFinder chain(graph, forward_nodes);
  MSRT_RETURN_IF_ERROR(chain.Run());
  RecomputePlan plan;
  for (const ChainLink& link : chain.links()) {
    plan.kept_bytes += link.inner_bytes + link.output_bytes;
    plan.forward_seconds += link.seconds;
  }
  if (part > 0) budget_bytes = part * plan.kept_bytes;
  MSRT_ASSIGN_OR_RETURN(plan.chain, PlanChain(chain.links(), budget_bytes));
  for (const ChainSegment& s : plan.chain.segments) plan.blocks.push_back(chain.NodesOf(s));
  return plan;
}

Result<ChainPlan> RecomputeToBudget(Graph* graph, size_t forward_nodes, double budget_bytes) {
  MSRT_ASSIGN_OR_RETURN(RecomputePlan plan, PlanRecomputation(*graph, forward_nodes, budget_bytes));
  MSRT_RETURN_IF_ERROR(RecomputeBlocks(graph, forward_nodes, plan.blocks));
  return std::move(plan.chain);
}

}  // namespace msrt
