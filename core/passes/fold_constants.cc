#include "core/passes/fold_constants.h"

#include <algorithm>

#include "ops/node_view.h"

namespace msrt {
namespace {

bool CanFold(const Graph& graph, const Node& node, const PassContext& context) {
  if (node.def == nullptr || node.def->effect != Effect::kNone) return false;
  const bool shape_only = (node.def->traits & kShapeOnly) != 0;
  for (ValueId v : node.inputs) {
    if (v == kNoValue) continue;
    const Value& value = graph.value(v);
    if (value.constant == nullptr && !(shape_only && value.type.concrete())) return false;
  }
  size_t bytes = 0;
  for (ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    const Type& type = graph.value(v).type;
    if (!type.concrete()) return false;
    bytes += type.bytes();
  }
  return bytes <= context.fold_budget_bytes && context.evaluator->Knows(NodeView(graph, node).op());
}

// A view of a constant shares its bytes; everything else is computed into memory of its own.
Result<std::vector<ConstTensor>> Evaluate(const Graph& graph, const Node& node, const PassContext& context) {
  std::vector<ConstTensor> results;
  std::vector<TensorView> inputs, outputs;
  for (ValueId v : node.outputs) {
    const Type type = v == kNoValue ? Type::Tensor(DType::kU8, {0}) : graph.value(v).type;
    if (node.def->traits & kView) {
      ConstTensor shared = *graph.value(node.inputs[0]).constant;
      shared.dims = type.dims;
      return std::vector<ConstTensor>{std::move(shared)};
    }
    results.push_back(ConstTensor::Copy(type.dtype, type.dims, std::vector<std::byte>(type.bytes())));
    outputs.push_back(
        {type.dtype, type.dims, Layout::kPlain, v == kNoValue ? nullptr : const_cast<std::byte*>(results.back().bytes.data())});
  }
  static std::byte never_read;  // what a shape-only op gets for data
  for (ValueId v : node.inputs) {
    TensorView t;
    if (v != kNoValue) {
      const Value& value = graph.value(v);
      t = {value.type.dtype, value.type.dims, Layout::kPlain,
           value.constant != nullptr ? const_cast<std::byte*>(value.constant->bytes.data()) : &never_read};
    }
    inputs.push_back(t);
  }
  MSRT_RETURN_IF_ERROR(context.evaluator->Evaluate(NodeView(graph, node).op(), inputs, outputs));
  return results;
}

}  // namespace

Status FoldConstants(const PassContext& context, Graph* graph) {
  size_t total = 0;
  std::erase_if(graph->nodes, [&](Node& node) {
    if (!CanFold(*graph, node, context)) return false;
    auto results = Evaluate(*graph, node, context);
    if (!results.ok()) return false;  // an error in the data (an index out of range) is the run's to report
    size_t bytes = 0;
    for (const ConstTensor& r : *results) bytes += (node.def->traits & kView) ? 0 : r.bytes.size();
    if (total + bytes > 16 * context.fold_budget_bytes) return false;
    total += bytes;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      graph->value(node.outputs[i]).constant = std::make_shared<const ConstTensor>(std::move((*results)[i]));
    }
    return true;
  });
  return OkStatus();
}

}  // namespace msrt
