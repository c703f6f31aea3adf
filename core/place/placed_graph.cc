#include "core/base/checked_math.h"
#include "core/place/program.h"

namespace msrt {
namespace {

Type TypicalInput(const Type& declared, const Dims* hint) {
  Type t = declared;
  if (!t.is_tensor()) return t;
  if (!t.rank_known) {
    t.rank_known = true;
    t.dims = hint != nullptr ? *hint : Dims{1};
  }
  for (int i = 0; i < t.rank(); ++i) {
    if (IsKnown(t.dims[i])) continue;
    const bool hinted = hint != nullptr && i < hint->rank() && IsKnown((*hint)[i]);
    t.dims[i] = hinted ? (*hint)[i] : i == 0 ? 1 : PlacedGraph::kTypicalExtent;
  }
  return t;
}

// What stays unknown after propagation depends on data; costs need some number.
void FillUnknown(Type* t) {
  if (!t->is_tensor()) return;
  t->rank_known = true;
  for (int64_t& d : t->dims) {
    if (!IsKnown(d)) d = 1;
  }
}

}  // namespace

Result<std::unique_ptr<PlacedGraph>> PlacedGraph::Make(const Graph& graph, const Evaluator& evaluator, std::span<const Dims> typical_dims) {
  std::unique_ptr<PlacedGraph> placed(new PlacedGraph(graph));
  GraphFacts& typical = placed->typical_;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    Type& t = typical.types[IndexOf(graph.inputs[i])];
    t = TypicalInput(t, i < typical_dims.size() ? &typical_dims[i] : nullptr);
  }
  placed->rows_.resize(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    // Typical extents are guesses: where they contradict the graph, the declared dims (with ones) must do.
    const bool agreed = PropagateNode(graph, n, evaluator, &typical).ok();
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (!agreed) typical.types[IndexOf(v)] = graph.value(v).type;
      FillUnknown(&typical.types[IndexOf(v)]);
    }
    Row& row = placed->rows_[n];
    row.declared = &placed->views_.emplace_back(node, placed->declared_).op();
    row.typical = &placed->views_.emplace_back(node, typical).op();
    for (ValueId v : node.inputs) row.inputs.push_back(v == kNoValue ? -1 : int64_t{IndexOf(v)});
    for (ValueId v : node.outputs) row.outputs.push_back(v == kNoValue ? -1 : int64_t{IndexOf(v)});
    if (node.def != nullptr && node.def->cost != nullptr && agreed) {
      const Cost cost = node.def->cost(*row.typical);
      row.flops = cost.flops;
      row.bytes = cost.bytes_read + cost.bytes_written;
    }
  }
  return placed;
}

NodeInfo PlacedGraph::node(size_t index) const {
  const Row& row = rows_[index];
  return {row.declared, row.typical, row.flops, row.bytes, row.inputs, row.outputs};
}

}  // namespace msrt
