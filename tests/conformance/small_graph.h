// Helpers to write graphs and tensors in tests.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "ops/builder.h"
#include "tests/conformance/op_case.h"

namespace msrt::testing {

inline ConstTensor Floats(Dims dims, std::vector<float> values) {
  return ConstTensor::Floats(dims, values);
}

inline ConstTensor RandomFloats(const Dims& dims, uint32_t seed, float spread = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = normal(random);
  return ConstTensor::Floats(dims, values);
}

// A module with one graph that grows node by node.
struct SmallGraph {
  Module module;
  Graph& graph;
  SmallGraph() : graph(module.graphs.emplace_back()) {
    graph.name = "main";
    module.entries = {0};
  }
  ValueId Input(const char* name, DType dtype, Dims dims) {
    return graph.AddInput(name, Type::Tensor(dtype, dims));
  }
  ValueId Add(std::string_view op, std::string_view name, std::vector<ValueId> inputs,
              AttrList attrs = {}) {
    auto v = GraphBuilder(&graph).Add(op, name, std::move(inputs), std::move(attrs));
    EXPECT_TRUE(v.ok()) << v.status().message();
    return v.ok() ? *v : kNoValue;
  }
};

inline void ExpectSameBits(const std::vector<ConstTensor>& got,
                           const std::vector<ConstTensor>& expected,
                           const std::string& where = "") {
  ASSERT_EQ(got.size(), expected.size()) << where;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(Difference(got[i], expected[i], 0, 0), "") << "output " << i << " " << where;
}

}  // namespace msrt::testing
