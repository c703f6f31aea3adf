#include "ops/builder.h"

#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"

namespace msrt {

Result<std::vector<ValueId>> GraphBuilder::Add(std::string_view domain, std::string_view op,
                                               std::string_view name, std::vector<ValueId> inputs,
                                               AttrList attrs, size_t output_count,
                                               std::vector<Type> declared) {
  Node node;
  node.name = name;
  node.domain = domain;
  node.op = op;
  node.def = FindOp(domain, op, ops_);
  node.version = node.def != nullptr ? node.def->version : 1;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  const std::string what = StrCat("node '", name, "' (", OpName(node), ")");
  for (ValueId v : node.inputs) {
    if (v != kNoValue && IndexOf(v) >= graph_->value_count())
      return InvalidArgument(what, ": input value ", IndexOf(v), " does not exist");
  }
  std::vector<Type> types(output_count);
  if (node.def != nullptr) {
    const NodeView view(*graph_, node);
    Status status = InferTypes(*node.def, view.op(), types);
    if (!status.ok()) return std::move(status).Within(what);
    for (size_t i = 0; i < declared.size(); ++i) {
      if (!IsDeclared(types[i])) {  // control flow: only the module knows the types
        types[i] = std::move(declared[i]);
        continue;
      }
      auto merged = MergeTypes(declared[i], types[i]);
      if (!merged.ok()) {
        return InvalidModel(what, ": output ", i, " is declared ", declared[i],
                            ", but its inputs give ", types[i], ": ", merged.status().message());
      }
      types[i] = *std::move(merged);
    }
  } else {
    if (declared.size() != output_count) {
      return Unsupported(what,
                         ": this build does not know the op; declare the types of its outputs, or "
                         "register a kernel that defines the op before the graph is built");
    }
    types = std::move(declared);
  }
  for (size_t i = 0; i < output_count; ++i) {
    node.outputs.push_back(
        graph_->AddValue(i == 0 ? std::string(name) : StrCat(name, ":", i), std::move(types[i])));
  }
  std::vector<ValueId> outputs = node.outputs;
  graph_->nodes.push_back(std::move(node));
  return outputs;
}

Result<ValueId> GraphBuilder::Add(std::string_view op, std::string_view name,
                                  std::vector<ValueId> inputs, AttrList attrs) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                        Add("", op, name, std::move(inputs), std::move(attrs), 1));
  return outputs[0];
}

}  // namespace msrt
