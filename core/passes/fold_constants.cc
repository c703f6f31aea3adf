#include "core/passes/fold_constants.h"

#include <algorithm>

#include "core/base/half_array.h"
#include "core/graph/constants.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// Smaller weights are widened at once.
constexpr size_t kSmallWeightBytes = 4096;

bool HasViewTrait(const Node& node) { return (node.def->traits & kView) != 0; }

size_t OutputBytes(const Graph& graph, const Node& node) {
  size_t bytes = 0;
  for (ValueId v : node.outputs) bytes += v == kNoValue ? 0 : graph.value(v).type.bytes();
  return bytes;
}

// Whether the node widens a weight that is stored in few bits.
bool IsWidening(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || (node.op != "DequantizeLinear" && node.op != "Cast")) return false;
  const size_t bytes = OutputBytes(graph, node);
  const ConstTensor* stored = graph.value(node.inputs[0]).constant.get();
  // Delegates may multiply bytes natively, so even small matrices of bytes are not widened here.
  const bool waits =
      stored != nullptr &&
      (bytes > kSmallWeightBytes || (node.op == "DequantizeLinear" && stored->dims.rank() >= 2));
  return waits && bytes > stored->bytes.size();
}

// Takes the node's share of the budget, or returns false and leaves it untouched. A view of a
// constant costs nothing. A widened weight may have any size and work: its bytes bound both.
bool Spend(const Graph& graph, const Node& node, size_t largest, FoldBudget* budget) {
  if (HasViewTrait(node)) return true;
  const auto bytes = static_cast<double>(OutputBytes(graph, node));
  const bool widening = IsWidening(graph, node);
  const Cost cost = widening ? Cost{} : node.def->cost(NodeView(graph, node).op());
  const double work = cost.flops + (cost.bytes_read + cost.bytes_written) / 8;
  if (!widening && bytes > static_cast<double>(largest)) return false;
  if (work > budget->work || bytes > budget->bytes) return false;
  budget->work -= work;
  budget->bytes -= bytes;
  return true;
}

bool CanFold(const Graph& graph, const Node& node, const PassContext& context) {
  if (!IsPure(node)) return false;
  const bool shape_only = (node.def->traits & kShapeOnly) != 0;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    const Value& value = graph.value(v);
    if (value.constant == nullptr && !(shape_only && value.type.concrete())) return false;
  }
  for (ValueId v : node.outputs) {
    if (v != kNoValue && !graph.value(v).type.concrete()) return false;
  }
  return context.evaluator->Knows(NodeView(graph, node).op());
}

// Weights of f16 and bf16 may be nearly all of a model, so they are widened with vectors and on all
// threads. Returns false if the node does something else.
Result<bool> WidenFloats(const Graph& graph, const Node& node, const PassContext& context,
                         std::span<const TensorView> outputs) {
  constexpr int64_t kGrain = int64_t{1} << 16;
  if (!node.domain.empty() || node.op != "Cast" || outputs[0].dtype != DType::kF32) return false;
  const ConstTensor& from = *graph.value(node.inputs[0]).constant;
  const auto convert = [&]<typename Small>() {
    const auto range = [&](int64_t begin, int64_t end) {
      ConvertArray(from.As<Small>().data() + begin, outputs[0].As<float>() + begin,
                   static_cast<size_t>(end - begin));
    };
    const int64_t elements = outputs[0].elements();
    if (context.parallel != nullptr && elements > kGrain) {
      return RunOnTeam(*context.parallel,
                       [&] { return ParallelRanges(*context.parallel, elements, kGrain, range); });
    }
    range(0, elements);
    return OkStatus();
  };
  if (from.dtype == DType::kF16) {
    MSRT_RETURN_IF_ERROR(convert.operator()<Half>());
    return true;
  }
  if (from.dtype != DType::kBF16) return false;
  MSRT_RETURN_IF_ERROR(convert.operator()<BFloat16>());
  return true;
}

// A view of a constant shares its bytes; every other result gets its own memory.
Result<std::vector<ConstTensor>> Evaluate(const Graph& graph, const Node& node,
                                          const PassContext& context) {
  std::vector<ConstTensor> results;
  std::vector<TensorView> inputs, outputs;
  for (ValueId v : node.outputs) {
    const Type type = v == kNoValue ? Type::Tensor(DType::kU8, {0}) : graph.value(v).type;
    if (HasViewTrait(node)) {
      ConstTensor shared = *graph.value(node.inputs[0]).constant;
      shared.dims = type.dims;
      return std::vector<ConstTensor>{std::move(shared)};
    }
    MSRT_ASSIGN_OR_RETURN(NewConstant made, MakeConstant(type.dtype, type.dims));
    outputs.push_back(
        {type.dtype, type.dims, Layout::kPlain, v == kNoValue ? nullptr : made.bytes.data()});
    results.push_back(std::move(made.tensor));
  }
  MSRT_ASSIGN_OR_RETURN(const bool widened, WidenFloats(graph, node, context, outputs));
  if (widened) {
    if (context.forget) context.forget(*graph.value(node.inputs[0]).constant);
    return results;
  }
  static std::byte never_read;  // data pointer for shape-only ops
  for (ValueId v : node.inputs) {
    TensorView t;
    if (v != kNoValue) {
      const Value& value = graph.value(v);
      t = {value.type.dtype, value.type.dims, Layout::kPlain,
           value.constant != nullptr ? const_cast<std::byte*>(value.constant->bytes.data())
                                     : &never_read};
    }
    inputs.push_back(t);
  }
  MSRT_RETURN_IF_ERROR(context.evaluator->Evaluate(NodeView(graph, node).op(), inputs, outputs));
  return results;
}

Status Fold(const PassContext& context, bool widen, Graph* graph) {
  FoldBudget own;
  FoldBudget* budget = context.folding != nullptr ? context.folding : &own;
  std::erase_if(graph->nodes, [&](Node& node) {
    if (!CanFold(*graph, node, context) || (!widen && IsWidening(*graph, node))) return false;
    if (!Spend(*graph, node, context.fold_budget_bytes, budget)) return false;
    auto results = Evaluate(*graph, node, context);
    if (!results.ok()) return false;  // the run reports errors in the data (an index out of range)
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      graph->value(node.outputs[i]).constant =
          std::make_shared<const ConstTensor>(std::move((*results)[i]));
    }
    return true;
  });
  return OkStatus();
}

}  // namespace

Status FoldConstants(const PassContext& context, Graph* graph) {
  return Fold(context, false, graph);
}

Status WidenWeights(const PassContext& context, Graph* graph) { return Fold(context, true, graph); }

}  // namespace msrt
