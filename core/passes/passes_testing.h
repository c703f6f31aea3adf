// Graphs for tests of passes: built node by node, rewritten, and run with passes on and off.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "core/passes/pass.h"
#include "ops/builder.h"
#include "tests/conformance/op_case.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {

inline const PassContext kContext{.evaluator = TestEnvironment()->evaluator};

// A module under construction. Adding an invalid node fails the test.
struct Net {
  Module module;
  GraphBuilder builder;
  std::mt19937 random{5};

  Net() : module(EmptyModule()), builder(&module.graphs[0]) {}
  Graph& graph() { return module.graphs[0]; }
  static Module EmptyModule() {
    Module m;
    m.graphs.emplace_back().name = "main";
    m.entries = {0};
    return m;
  }
  ValueId Input(const char* name, Dims dims) {
    return graph().AddInput(name, Type::Tensor(DType::kF32, dims));
  }
  ConstTensor Random(Dims dims, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(static_cast<size_t>(dims.elements()));
    for (float& v : values) v = uniform(random);
    return ConstTensor::Floats(dims, values);
  }
  ValueId Weight(Dims dims, float low = -1, float high = 1) {
    return graph().AddConstant(StrCat("w", graph().value_count()), Random(dims, low, high));
  }
  ValueId Op(const char* op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    auto out =
        builder.Add(op, StrCat(op, graph().nodes.size()), std::move(inputs), std::move(attrs));
    EXPECT_TRUE(out.ok()) << out.status().message();
    return out.ok() ? *out : kNoValue;
  }
  ValueId Scalar(double value, Dims dims = {}) {
    const float number = static_cast<float>(value);
    return graph().AddConstant(StrCat("c", graph().value_count()),
                               ConstTensor::Floats(dims, {&number, 1}));
  }
  ValueId List(std::vector<int64_t> values) {
    return graph().AddConstant(StrCat("i", graph().value_count()), ConstTensor::Int64s(values));
  }
  std::vector<std::string> Ops() {
    std::vector<std::string> names;
    for (const Node& n : graph().nodes) names.push_back(OpName(n));
    return names;
  }
};

using Names = std::vector<std::string>;

// Expects the same outputs, up to float rounding, with all passes and with none.
inline void ExpectSameResults(const Module& module, const std::vector<ConstTensor>& inputs) {
  const auto plain = RunModule(module, inputs, {"reference"}, {"all"});
  const auto optimised = RunModule(module, inputs, {"reference"});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_TRUE(optimised.ok()) << optimised.status().message();
  ASSERT_EQ(plain->size(), optimised->size());
  for (size_t i = 0; i < plain->size(); ++i)
    EXPECT_EQ(Difference((*optimised)[i], (*plain)[i], 1e-5, 1e-5), "");
}

// Returns the ops after running a single pass. Expects that the module stays valid and that its
// outputs for `inputs` do not change.
inline Names OpsAfter(PassFn pass, Net* net, const std::vector<ConstTensor>& inputs) {
  const auto before = RunModule(net->module, inputs, {"reference"}, {"all"});
  EXPECT_TRUE(before.ok()) << before.status().message();
  std::vector<std::string> names;
  for (ValueId v : net->graph().outputs) names.push_back(net->graph().value(v).name);
  EXPECT_TRUE(pass(kContext, &net->graph()).ok());
  const auto after = RunModule(net->module, inputs, {"reference"}, {"all"});
  EXPECT_TRUE(after.ok()) << after.status().message() << "\n" << Print(net->module);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(net->graph().value(net->graph().outputs[i]).name, names[i]);
    if (!before.ok() || !after.ok()) continue;
    EXPECT_EQ(Difference((*after)[i], (*before)[i], 1e-5, 1e-5), "") << "output " << i;
  }
  return net->Ops();
}

}  // namespace msrt::testing
