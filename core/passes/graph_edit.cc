#include "core/passes/graph_edit.h"

#include <algorithm>

#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// A symbol of a callee may be a different number at each call, and inlined calls share one graph.
Type WithoutSymbols(Type type) {
  if (!type.is_tensor()) return type;
  for (int64_t& d : type.dims) d = IsKnown(d) ? d : kUnknownDim;
  return type;
}

}  // namespace

GraphEdit::GraphEdit(Graph* graph, bool named_outputs)
    : graph_(graph), before_(std::move(graph->nodes)), named_(graph->value_count()) {
  graph_->nodes.clear();
  for (uint32_t v = 0; v < graph_->value_count(); ++v) replacement_.push_back(ValueId(v));
  if (!named_outputs) return;
  for (ValueId v : graph_->outputs) named_[IndexOf(v)] = true;
}

GraphEdit::~GraphEdit() {
  for (ValueId& v : graph_->outputs) v = Current(v);
}

Node& GraphEdit::Visit(size_t n) {
  for (ValueId& v : before_[n].inputs) v = Current(v);
  return before_[n];
}

// Narrows the types of the node's outputs to those inferred from its inputs.
bool GraphEdit::Infer(const Node& node) {
  if (node.def == nullptr || node.def->effect == Effect::kControl)
    return true;  // depends on the called graphs
  std::vector<Type> types(node.outputs.size(), UndeclaredType());
  if (!InferTypes(*node.def, NodeView(*graph_, node).op(), types, /*check_attrs=*/false).ok())
    return false;
  for (size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Type& type = graph_->value(node.outputs[i]).type;
    auto merged = IsDeclared(type) ? MergeTypes(types[i], type) : Result<Type>(types[i]);
    if (!merged.ok()) return false;
    type = *std::move(merged);
  }
  return true;
}

ValueId GraphEdit::Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
                       AttrList attrs) {
  Node node;
  node.name = name;
  node.op = op;
  node.def = FindOp("", op, nullptr);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  node.outputs = {graph_->AddValue(std::string(name), UndeclaredType())};
  if (!Infer(node)) return kNoValue;
  made_here_.resize(graph_->value_count());
  made_here_.back() = true;
  Keep(std::move(node));
  return graph_->nodes.back().outputs[0];
}

std::optional<std::vector<ValueId>> GraphEdit::Inline(const Graph& callee,
                                                      std::span<const ValueId> arguments) {
  if (arguments.size() != callee.inputs.size()) return std::nullopt;
  std::vector<ValueId> copies(callee.value_count(), kNoValue);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == kNoValue) return std::nullopt;
    // A call checks its arguments at run time; inlined nodes would not.
    const Type& given = graph_->value(arguments[i]).type;
    const auto merged = MergeTypes(given, callee.value(callee.inputs[i]).type);
    if (!merged.ok() || !(*merged == given)) return std::nullopt;
    copies[IndexOf(callee.inputs[i])] = arguments[i];
  }
  const auto copy = [&](ValueId v) {
    if (v == kNoValue) return v;
    ValueId& mine = copies[IndexOf(v)];
    if (mine != kNoValue) return mine;
    const Value& value = callee.value(v);
    mine = graph_->AddValue(value.name,
                            value.constant != nullptr ? value.type : WithoutSymbols(value.type));
    graph_->value(mine).constant = value.constant;
    return mine;
  };
  const size_t first = graph_->nodes.size();
  for (const Node& node : callee.nodes) {
    Node mine = node;
    for (ValueId& v : mine.inputs) v = copy(v);
    for (ValueId& v : mine.outputs) v = copy(v);
    const bool fits = Infer(mine);
    Keep(std::move(mine));
    if (fits) continue;
    Undo(first);
    return std::nullopt;
  }
  made_here_.resize(graph_->value_count());
  for (size_t n = first; n < graph_->nodes.size(); ++n) {
    for (ValueId v : graph_->nodes[n].outputs) {
      if (v != kNoValue) made_here_[IndexOf(v)] = true;
    }
  }
  std::vector<ValueId> results;
  for (ValueId v : callee.outputs) results.push_back(copy(v));
  made_here_.resize(graph_->value_count());
  return results;
}

bool GraphEdit::CanReplace(ValueId value, ValueId replaced) const {
  if (replaced == kNoValue) return true;
  if (value == kNoValue) return false;
  const Type &to = graph_->value(value).type, &from = graph_->value(replaced).type;
  return MergeTypes(to, from).ok() && (to.is_tensor() || !IsNamedOutput(replaced));
}

void GraphEdit::RenameValue(ValueId from, ValueId to, size_t first_node) {
  for (size_t n = first_node; n < graph_->nodes.size(); ++n) {
    std::replace(graph_->nodes[n].inputs.begin(), graph_->nodes[n].inputs.end(), from, to);
    std::replace(graph_->nodes[n].outputs.begin(), graph_->nodes[n].outputs.end(), from, to);
  }
}

bool GraphEdit::ReplaceOutput(ValueId output, ValueId by) {
  if (output == kNoValue || IsNamedOutput(output) || !CanReplace(by, output)) return false;
  replacement_[IndexOf(output)] = by;
  return true;
}

bool GraphEdit::Replace(const Node& node, std::span<const ValueId> results) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (i >= results.size() || !CanReplace(results[i], node.outputs[i])) return false;
  }
  std::vector<ValueId> current(results.begin(), results.end());
  made_here_.resize(graph_->value_count());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId old = node.outputs[i], result = current[i];
    if (old == kNoValue) continue;
    const bool fresh = made_here_[IndexOf(result)];
    if (fresh) {
      auto merged = MergeTypes(graph_->value(result).type, graph_->value(old).type);
      if (merged.ok()) graph_->value(result).type = *std::move(merged);
    }
    if (!IsNamedOutput(old)) {
      replacement_[IndexOf(old)] = result;
    } else if (fresh && !IsNamedOutput(result)) {
      // The producer makes the named value instead; no node visited before can have used the other.
      graph_->value(old).type = graph_->value(result).type;
      RenameValue(result, old, 0);
      std::replace(current.begin(), current.end(), result, old);
      std::replace(replacement_.begin(), replacement_.end(), result, old);
    } else {
      Node move;
      move.name = graph_->value(old).name;
      move.op = "Identity";
      move.def = FindOp("", "Identity", nullptr);
      move.inputs = {result};
      move.outputs = {old};
      Keep(std::move(move));
    }
  }
  return true;
}

bool EditControl(
    Module* module, uint32_t g,
    FunctionRef<EditResult(uint32_t n, Node& node, const ControlShape& shape, GraphEdit& edit)>
        visit) {
  Graph& graph = module->graphs[g];
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), IsControl)) return false;
  const bool entry =
      std::find(module->entries.begin(), module->entries.end(), g) != module->entries.end();
  bool changed = false;
  GraphEdit edit(&graph, entry);
  for (uint32_t n = 0; n < edit.node_count(); ++n) {
    Node& node = edit.Visit(n);
    const EditResult edited =
        IsControl(node) ? visit(n, node, ShapeOfControl(node), edit) : EditResult::kUnchanged;
    changed = changed || edited != EditResult::kUnchanged;
    if (edited != EditResult::kReplaced) edit.Keep(std::move(node));
  }
  return changed;
}

}  // namespace msrt
