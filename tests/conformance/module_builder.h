// Builds modules of several graphs that call each other, over i64 numbers unless told otherwise.
// Graph 0 is the entry. An invalid node ends the program: it is a bug of the test or benchmark.
#pragma once

#include <string>
#include <vector>

#include "ops/builder.h"

namespace msrt::testing {

inline const Type kNumber = Type::Tensor(DType::kI64, {});
inline const Type kFlag = Type::Tensor(DType::kBool, {});

class ModuleBuilder {
 public:
  explicit ModuleBuilder(size_t graphs) {
    module.graphs.resize(graphs);
    module.entries = {0};
    for (size_t g = 0; g < graphs; ++g) module.graphs[g].name = StrCat("g", g);
  }
  ValueId Input(uint32_t g, Type type = kNumber) {
    return module.graphs[g].AddInput(StrCat("in", module.graphs[g].inputs.size()), std::move(type));
  }
  ValueId Number(uint32_t g, int64_t value) {
    return module.graphs[g].AddConstant(
        Name(), ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1)));
  }
  ValueId Float(uint32_t g, float value) {
    return module.graphs[g].AddConstant(
        Name(), ConstTensor::Of<float>(DType::kF32, {}, std::span(&value, 1)));
  }
  ValueId Op(uint32_t g, std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    const auto value =
        GraphBuilder(&module.graphs[g]).Add(op, Name(), std::move(inputs), std::move(attrs));
    MSRT_CHECK(value.ok());
    return *value;
  }
  std::vector<ValueId> Control(uint32_t g, std::string_view domain, std::string_view op,
                               std::vector<ValueId> inputs, AttrList attrs,
                               std::vector<Type> results) {
    const size_t count = results.size();
    const auto values = GraphBuilder(&module.graphs[g])
                            .Add(domain, op, Name(), std::move(inputs), std::move(attrs), count,
                                 std::move(results));
    MSRT_CHECK(values.ok());
    return *values;
  }
  ValueId If(uint32_t g, ValueId condition, std::vector<ValueId> captured, uint32_t yes,
             uint32_t no) {
    captured.insert(captured.begin(), condition);
    return Control(g, "", "If", std::move(captured),
                   {{"then_branch", GraphRef{yes}}, {"else_branch", GraphRef{no}}}, {kNumber})[0];
  }
  // Carries the first of `values`.
  ValueId While(uint32_t g, std::vector<ValueId> values, uint32_t condition, uint32_t body) {
    return While(g, std::move(values), condition, body, {kNumber})[0];
  }
  // Carries as many of `values` as it has results.
  std::vector<ValueId> While(uint32_t g, std::vector<ValueId> values, uint32_t condition,
                             uint32_t body, std::vector<Type> results) {
    const auto carried = static_cast<int64_t>(results.size());
    return Control(
        g, "msrt", "While", std::move(values),
        {{"condition", GraphRef{condition}}, {"body", GraphRef{body}}, {"carried", carried}},
        std::move(results));
  }
  ValueId Call(uint32_t g, uint32_t callee, std::vector<ValueId> arguments) {
    return Control(g, "msrt", "Call", std::move(arguments), {{"graph", GraphRef{callee}}},
                   {kNumber})[0];
  }
  void Output(uint32_t g, ValueId v) { module.graphs[g].outputs.push_back(v); }

  Module module;

 private:
  std::string Name() { return StrCat("v", names_++); }
  int names_ = 0;
};

// while (in0 < in1) in0 += 1
inline Module CountingLoop() {
  ModuleBuilder m(3);
  const ValueId from = m.Input(0), to = m.Input(0);
  m.Output(0, m.While(0, {from, to}, 1, 2));
  const ValueId i = m.Input(1), n = m.Input(1);
  m.Output(1, m.Op(1, "Less", {i, n}));
  const ValueId j = m.Input(2);
  m.Input(2);
  m.Output(2, m.Op(2, "Add", {j, m.Number(2, 1)}));
  return m.module;
}

}  // namespace msrt::testing
