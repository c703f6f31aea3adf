#include "core/passes/call_graph.h"

#include <algorithm>

namespace msrt {
namespace {

void Renumber(const std::vector<uint32_t>& number, AttrList* attrs) {
  std::vector<Attr> renumbered(attrs->begin(), attrs->end());
  bool names_graphs = false;
  for (Attr& attr : renumbered) {
    if (auto* one = std::get_if<GraphRef>(&attr.value)) {
      one->index = number[one->index];
      names_graphs = true;
    } else if (auto* many = std::get_if<std::vector<GraphRef>>(&attr.value)) {
      for (GraphRef& g : *many) g.index = number[g.index];
      names_graphs = true;
    }
  }
  if (names_graphs) *attrs = AttrList(std::move(renumbered));
}

}  // namespace

std::vector<uint32_t> GraphsNamedBy(const Node& node) {
  std::vector<uint32_t> graphs;
  for (const Attr& attr : node.attrs) {
    if (const auto* one = std::get_if<GraphRef>(&attr.value)) graphs.push_back(one->index);
    if (const auto* many = std::get_if<std::vector<GraphRef>>(&attr.value)) {
      for (GraphRef g : *many) graphs.push_back(g.index);
    }
  }
  return graphs;
}

CallGraph::CallGraph(const Module& module) : info_(module.graphs.size()) {
  FindReachable(module);
  PropagateEffects();
  OrderGraphs(module);
}

void CallGraph::FindReachable(const Module& module) {
  std::vector<uint32_t> waiting;
  const auto reach = [&](uint32_t g) {
    if (!info_[g].reachable) waiting.push_back(g);
    info_[g].reachable = true;
  };
  for (uint32_t entry : module.entries) {
    info_[entry].fixed_signature = true;
    reach(entry);
  }
  while (!waiting.empty()) {
    const uint32_t g = waiting.back();
    waiting.pop_back();
    const Graph& graph = module.graphs[g];
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (!IsControl(node)) {
        info_[g].pure = info_[g].pure && msrt::IsPure(node);
        for (uint32_t named : GraphsNamedBy(node)) {
          info_[named].fixed_signature = true;
          reach(named);
        }
        continue;
      }
      const ControlShape shape = ShapeOfControl(node);
      if (shape.kind == ControlKind::kCall && shape.graphs.empty())
        info_[g].pure = false;  // the function may have any effect
      for (uint32_t i = 0; i < shape.graphs.size(); ++i) {
        GraphInfo& callee = info_[shape.graphs[i]];
        callee.sites.push_back({g, n, i});
        callee.fixed_signature = callee.fixed_signature || shape.kind == ControlKind::kPartial;
        reach(shape.graphs[i]);
      }
    }
  }
}

void CallGraph::PropagateEffects() {
  std::vector<uint32_t> waiting;
  for (uint32_t g = 0; g < info_.size(); ++g) {
    if (!info_[g].pure) waiting.push_back(g);
  }
  while (!waiting.empty()) {
    const uint32_t g = waiting.back();
    waiting.pop_back();
    for (const CallSite& site : info_[g].sites) {
      if (!info_[site.graph].pure) continue;
      info_[site.graph].pure = false;
      waiting.push_back(site.graph);
    }
  }
}

// Repeatedly takes graphs that call no remaining graph. The graphs that remain reach a cycle and
// come last; they are recursive unless no cycle reaches them.
void CallGraph::OrderGraphs(const Module& module) {
  std::vector<size_t> callees(info_.size()), callers(info_.size());
  std::vector<std::vector<uint32_t>> called(info_.size());
  for (uint32_t g = 0; g < info_.size(); ++g) {
    if (!info_[g].reachable) continue;
    callers[g] = info_[g].sites.size();
    for (const CallSite& site : info_[g].sites) {
      ++callees[site.graph];
      called[site.graph].push_back(g);
    }
  }
  std::vector<uint32_t> waiting;
  for (uint32_t g = 0; g < module.graphs.size(); ++g) {
    if (info_[g].reachable && callees[g] == 0) waiting.push_back(g);
  }
  for (size_t i = 0; i < waiting.size(); ++i) {
    info_[waiting[i]].recursive = false;
    for (const CallSite& site : info_[waiting[i]].sites) {
      if (--callees[site.graph] == 0) waiting.push_back(site.graph);
    }
  }
  callees_first_ = waiting;
  std::vector<uint32_t> above;
  for (uint32_t g = 0; g < module.graphs.size(); ++g) {
    if (!info_[g].reachable || !info_[g].recursive) continue;
    callees_first_.push_back(g);
    if (callers[g] == 0) above.push_back(g);
  }
  while (!above.empty()) {
    const uint32_t g = above.back();
    above.pop_back();
    info_[g].recursive = false;
    for (uint32_t callee : called[g]) {
      if (--callers[callee] == 0 && info_[callee].recursive) above.push_back(callee);
    }
  }
}

bool CallGraph::OwnsGraphs(uint32_t graph, uint32_t node, const ControlShape& shape) const {
  return std::all_of(shape.graphs.begin(), shape.graphs.end(), [&](uint32_t g) {
    return !has_fixed_signature(g) &&
           std::all_of(sites(g).begin(), sites(g).end(),
                       [&](const CallSite& s) { return s.graph == graph && s.node == node; });
  });
}

bool CallGraph::IsPure(const Node& node) const {
  if (!IsControl(node)) return msrt::IsPure(node);
  const ControlShape shape = ShapeOfControl(node);
  if (shape.kind == ControlKind::kPartial) return true;
  return !shape.graphs.empty() &&
         std::all_of(shape.graphs.begin(), shape.graphs.end(), [&](uint32_t g) { return pure(g); });
}

bool RemoveUncalledGraphs(Module* module) {
  const CallGraph calls(*module);
  std::vector<uint32_t> number(module->graphs.size());
  std::vector<Graph> kept;
  for (uint32_t g = 0; g < module->graphs.size(); ++g) {
    if (!calls.reachable(g)) continue;
    number[g] = static_cast<uint32_t>(kept.size());
    kept.push_back(std::move(module->graphs[g]));
  }
  const bool changed = kept.size() != module->graphs.size();
  module->graphs = std::move(kept);
  if (!changed) return false;
  for (uint32_t& entry : module->entries) entry = number[entry];
  for (Graph& graph : module->graphs) {
    for (Node& node : graph.nodes) Renumber(number, &node.attrs);
  }
  return true;
}

}  // namespace msrt
