#include "tests/conformance/case_module.h"

#include <algorithm>

namespace msrt::testing {

CaseModule ModuleOf(const OpCase& c, bool open_dims) {
  CaseModule m;
  m.module.entries = {0};
  Graph& graph = m.module.graphs.emplace_back();
  graph.name = c.name;
  Node node;
  node.name = c.name;
  node.domain = c.domain;
  node.op = c.op;
  node.attrs = c.attrs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string name = StrCat("in", i);
    if (!c.inputs[i].tensor) {
      node.inputs.push_back(kNoValue);
    } else if (c.inputs[i].constant) {
      node.inputs.push_back(graph.AddConstant(name, *c.inputs[i].tensor));
    } else {
      Type type = c.inputs[i].tensor->type();
      if (open_dims) std::fill(type.dims.begin(), type.dims.end(), kUnknownDim);
      node.inputs.push_back(graph.AddInput(name, type));
      m.inputs.push_back(*c.inputs[i].tensor);
    }
  }
  for (size_t o = 0; o < c.expected.size(); ++o) {
    Type type;
    type.rank_known = false;
    type.dtype = c.expected[o] ? c.expected[o]->dtype : DType::kNone;
    node.outputs.push_back(c.expected[o] ? graph.AddValue(StrCat("out", o), type) : kNoValue);
    if (!c.expected[o]) continue;
    graph.outputs.push_back(node.outputs.back());
    m.outputs.push_back(o);
  }
  graph.nodes.push_back(std::move(node));
  return m;
}

}  // namespace msrt::testing
