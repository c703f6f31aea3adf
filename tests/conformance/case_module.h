// An op case as a module of one node.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "tests/conformance/op_case.h"

namespace msrt::testing {

// Inputs marked constant in the case are constants, the others are inputs of the graph.
struct CaseModule {
  Module module;
  std::vector<ConstTensor> inputs;
  std::vector<size_t> outputs;  // of the case
};

CaseModule ModuleOf(const OpCase& c, bool open_dims);

}  // namespace msrt::testing
