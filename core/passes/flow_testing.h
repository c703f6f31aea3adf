// Modules of several graphs for tests of the passes that change control flow.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "core/passes/pass.h"
#include "ops/validate.h"
#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {

inline ConstTensor NumberOf(int64_t value) {
  return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1));
}
inline ConstTensor FlagOf(bool value) {
  const uint8_t byte = value ? 1 : 0;
  return ConstTensor::Of<uint8_t>(DType::kBool, {}, std::span(&byte, 1));
}
inline ValueId Flag(ModuleBuilder* m, uint32_t g, bool value) {
  return m->module.graphs[g].AddConstant("flag", FlagOf(value));
}

// Returns the names of the ops of a graph, in order.
inline std::vector<std::string> OpsOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& n : graph.nodes) names.push_back(OpName(n));
  return names;
}
using OpNames = std::vector<std::string>;

// Computes all outputs for each set of inputs; every run must succeed.
inline std::vector<std::vector<ConstTensor>> RunEach(
    const Module& module, const std::vector<std::vector<ConstTensor>>& inputs) {
  std::vector<std::vector<ConstTensor>> outputs;
  for (const auto& given : inputs) {
    const auto computed = RunModule(module, given, {"reference"}, {"all"});
    EXPECT_TRUE(computed.ok()) << computed.status().message() << "\n" << Print(module);
    outputs.push_back(computed.ok() ? *computed : std::vector<ConstTensor>());
  }
  return outputs;
}

// Returns the module after a single pass. Expects that it is valid, keeps the names of its outputs,
// computes bitwise the same results, and that the pass returns `changes`.
inline Module AfterPass(ModulePassFn pass, Module module,
                        const std::vector<std::vector<ConstTensor>>& inputs, bool changes = true) {
  EXPECT_TRUE(Validate(&module).ok()) << Validate(&module).message();
  const auto before = RunEach(module, inputs);
  std::vector<std::string> names;
  for (ValueId v : module.main().outputs) names.push_back(module.main().value(v).name);
  const auto changed = pass({.evaluator = TestEnvironment()->evaluator}, &module);
  EXPECT_TRUE(changed.ok() && *changed == changes);
  const Status valid = Validate(&module);
  EXPECT_TRUE(valid.ok()) << valid.message() << "\n" << Print(module);
  const auto after = RunEach(module, inputs);
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(module.main().value(module.main().outputs[i]).name, names[i]);
  for (size_t r = 0; r < before.size(); ++r) {
    EXPECT_EQ(after[r].size(), before[r].size());
    for (size_t i = 0; i < std::min(after[r].size(), before[r].size()); ++i) {
      const ConstTensor &x = after[r][i], &y = before[r][i];
      EXPECT_EQ(x.type(), y.type()) << "output " << i;
      EXPECT_TRUE(std::equal(x.bytes.begin(), x.bytes.end(), y.bytes.begin(), y.bytes.end()))
          << "output " << i << "\n"
          << Print(module);
    }
  }
  return module;
}

}  // namespace msrt::testing
