#include "core/parallel/split.h"

#include "core/parallel/rank_graph.h"

namespace msrt {
namespace {

Status SetInputDims(const Graph& graph, std::span<const Dims> inputs, GraphFacts* facts) {
  if (inputs.size() != graph.inputs.size())
    return InvalidArgument(inputs.size(), " shapes for ", graph.inputs.size(), " inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.value(graph.inputs[i]);
    auto type = MergeTypes(value.type, Type::Tensor(value.type.dtype, inputs[i]));
    if (!type.ok() || !type->concrete())
      return InvalidArgument("input ", i, " '", value.name, "' is ", value.type, ", not ",
                             inputs[i]);
    facts->types[IndexOf(graph.inputs[i])] = *std::move(type);
  }
  return OkStatus();
}

}  // namespace

Result<RankModule> Split(const Module& module, size_t entry, std::span<const Dims> inputs,
                         const Evaluator& evaluator, const SplitOptions& options, int rank) {
  if (entry >= module.entries.size())
    return NotFound("entry ", entry, " does not exist; the model has ", module.entries.size());
  const Graph& graph = module.graphs[module.entries[entry]];
  GraphFacts facts(graph);
  MSRT_RETURN_IF_ERROR(SetInputDims(graph, inputs, &facts));
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Status status = PropagateNode(graph, n, evaluator, &facts);
    if (!status.ok()) return std::move(status).Within(Describe(graph, n));
  }
  MSRT_ASSIGN_OR_RETURN(const GraphSpaces spaces, GraphSpaces::Resolve(graph, facts));
  MSRT_ASSIGN_OR_RETURN(const SplitPlan plan, PlanSplit(spaces, options));
  if (rank < 0 || rank >= plan.ranks)
    return InvalidArgument("there is no rank ", rank, " of ", plan.ranks);
  RankModule result;
  Module& out = result.module;
  out.name = module.name, out.producer = module.producer;
  out.symbols = module.symbols, out.metadata = module.metadata;
  out.has_pieces = true;
  out.graphs.emplace_back();
  out.entries = {0};
  RankGraph writer(spaces, plan, options, rank, &out.graphs[0]);
  MSRT_RETURN_IF_ERROR(writer.Write());
  writer.Describe(&result);
  return result;
}

}  // namespace msrt
