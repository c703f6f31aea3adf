// Op cases from tests/data/ops: a node, its inputs, and the outputs of an independent oracle.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/attribute.h"
#include "core/graph/tensor.h"

namespace msrt::testing {

struct CaseInput {
  std::optional<ConstTensor> tensor;  // empty: left out
  bool constant = false;              // part of the graph, so shape inference may read it
};

struct OpCase {
  std::string name, domain, op, oracle;
  AttrList attrs;
  std::vector<CaseInput> inputs;
  std::vector<std::optional<ConstTensor>> expected;
  double rtol = 0, atol = 0;
};

// Every case of tests/data/ops/*.cases, in file order. A file that cannot be read is a test
// failure, not an empty list.
const std::vector<OpCase>& AllOpCases();
// The cases of one file of tests/data.
std::vector<OpCase> OpCasesOf(const std::string& file);

// Describes the first difference; empty if equal within the case's tolerance.
std::string Difference(const ConstTensor& got, const ConstTensor& expected, double rtol,
                       double atol);

}  // namespace msrt::testing
