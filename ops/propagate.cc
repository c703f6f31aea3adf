#include "ops/propagate.h"

#include <algorithm>

#include "ops/infer.h"
#include "ops/node_view.h"

namespace msrt {
namespace {

// Shapes have a few elements; anything larger is data and is left to the run.
constexpr int64_t kMaxEvaluatedElements = 256;
// In operations and bytes moved. A small result of large constants is folded, or computed by the
// run, not by every binding.
constexpr double kMaxEvaluatedWork = 1 << 20;

double WorkOf(const Node& node, const OpView& op) {
  const Cost cost = node.def->cost(op);
  return cost.flops + cost.bytes_read + cost.bytes_written;
}

bool WorthEvaluating(const Node& node, std::span<const Type> outputs, const GraphFacts& facts) {
  if (node.def == nullptr || node.def->effect != Effect::kNone) return false;
  for (const Type& t : outputs) {
    if (!t.concrete() || t.elements() > kMaxEvaluatedElements || BitsOf(t.dtype) < 8) return false;
  }
  if (node.def->traits & kShapeOnly) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return v == kNoValue || facts.types[IndexOf(v)].concrete();
    });
  }
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return v == kNoValue || facts.known[IndexOf(v)] != nullptr;
  });
}

Status EvaluateNode(const Node& node, const OpView& op, const Evaluator& evaluator,
                    GraphFacts* facts) {
  std::vector<TensorView> inputs, outputs;
  for (ValueId v : node.inputs) {
    TensorView t;
    if (v != kNoValue) {
      const Type& type = facts->types[IndexOf(v)];
      const ConstTensor* data = facts->known[IndexOf(v)];
      // Shape-only ops never read the pointer, but null would mean an absent input.
      static std::byte nothing;
      t = {type.dtype, type.dims, Layout::kPlain,
           data != nullptr ? const_cast<std::byte*>(data->bytes.data()) : &nothing};
    }
    inputs.push_back(t);
  }
  std::vector<ConstTensor> results;
  for (ValueId v : node.outputs) {
    TensorView t;
    results.emplace_back();
    if (v != kNoValue) {
      const Type& type = facts->types[IndexOf(v)];
      results.back() =
          ConstTensor::Copy(type.dtype, type.dims, std::vector<std::byte>(type.bytes()));
      t = {type.dtype, type.dims, Layout::kPlain,
           const_cast<std::byte*>(results.back().bytes.data())};
    }
    outputs.push_back(t);
  }
  MSRT_RETURN_IF_ERROR(evaluator.Evaluate(op, inputs, outputs));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) facts->SetKnown(node.outputs[i], std::move(results[i]));
  }
  return OkStatus();
}

// A user-defined rule may return other types than at load, but kernels were compiled for the types
// at load.
Status CheckAgainstDeclared(const Graph& graph, const Node& node, std::span<Type> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Type& declared = graph.value(node.outputs[i]).type;
    auto merged = MergeTypes(outputs[i], declared);
    if (!merged.ok()) {
      return InvalidModel("its shape rule gives ", outputs[i], " for output ", i,
                          ", which the model declares ", declared, ": ", merged.status().message());
    }
    outputs[i] = *std::move(merged);
  }
  return OkStatus();
}

// Storage for the types of a node's outputs, without an allocation if they are few.
class OutputTypes {
 public:
  explicit OutputTypes(size_t count) : count_(count), many_(count > std::size(few_) ? count : 0) {}
  std::span<Type> all() {
    return many_.empty() ? std::span<Type>(few_, count_) : std::span<Type>(many_);
  }

 private:
  size_t count_;
  Type few_[4];
  std::vector<Type> many_;
};

void Keep(const Node& node, std::span<const Type> outputs, GraphFacts* facts) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) facts->types[IndexOf(node.outputs[i])] = outputs[i];
  }
}

}  // namespace

GraphFacts::GraphFacts(const Graph& graph)
    : types(graph.value_count()), known(graph.value_count()) {
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    types[v] = graph.value(ValueId(v)).type;
    known[v] = graph.value(ValueId(v)).constant.get();
  }
}

void GraphFacts::SetKnown(ValueId value, ConstTensor data) {
  evaluated.push_back(std::move(data));
  known[IndexOf(value)] = &evaluated.back();
}

Status PropagateNode(const Graph& graph, size_t index, const Evaluator& evaluator,
                     GraphFacts* facts) {
  const Node& node = graph.nodes[index];
  // The results of a called graph are known only after it has run.
  if (node.def == nullptr || node.def->effect == Effect::kControl) return OkStatus();
  const NodeView view(node, *facts);
  OutputTypes types(node.outputs.size());
  const std::span<Type> outputs = types.all();
  Status status = InferTypes(*node.def, view.op(), outputs, /*check_attrs=*/false);
  if (status.ok() && node.def->custom != nullptr)
    status = CheckAgainstDeclared(graph, node, outputs);
  if (!status.ok()) return std::move(status).Within(Describe(graph, index));
  Keep(node, outputs, facts);
  if (!WorthEvaluating(node, outputs, *facts) || WorkOf(node, view.op()) > kMaxEvaluatedWork)
    return OkStatus();
  if (!evaluator.Knows(view.op())) return OkStatus();
  status = EvaluateNode(node, view.op(), evaluator, facts);
  return std::move(status).Within(Describe(graph, index));
}

Status PropagateSized(const Graph& graph, size_t index, std::span<const ConstTensor* const> data,
                      GraphFacts* facts) {
  const Node& node = graph.nodes[index];
  std::vector<const Type*> inputs;
  for (ValueId v : node.inputs)
    inputs.push_back(v == kNoValue ? nullptr : &facts->types[IndexOf(v)]);
  OutputTypes types(node.outputs.size());
  Status status =
      SizeFromData(*node.def, NodeView(node, *facts).op().WithTypes(inputs, {}, data), types.all());
  if (!status.ok()) return std::move(status).Within(Describe(graph, index));
  Keep(node, types.all(), facts);
  return OkStatus();
}

}  // namespace msrt
