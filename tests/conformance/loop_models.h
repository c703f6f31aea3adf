// Loops over rows of floats, with the options and inputs that tests of the accelerator share.
#pragma once

#include "tests/conformance/module_builder.h"
#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {

inline const Type kRow = Type::Tensor(DType::kF32, {Dims{64}});

// Compiles without passes; only the pins restrict placement.
inline CompileOptions OptionsWithPins(std::vector<Pin> pins, bool strict = false) {
  CompileOptions options;
  options.passes.disabled = {"all"};
  options.place.pins = std::move(pins);
  options.place.strict = strict;
  return options;
}

inline ConstTensor Number(int64_t n) {
  return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&n, 1));
}

// (i, x) = (0, x); while (i < n) (i, x) = (i + 1, x * 1.5 * 0.75). Graph 1 is the condition, graph
// 2 the body.
inline Module Powers() {
  ModuleBuilder f(3);
  const ValueId n = f.Input(0, kNumber), x = f.Input(0, kRow);
  const auto results = f.While(0, {f.Number(0, 0), x, n}, 1, 2, {kNumber, kRow});
  f.Output(0, results[0]);
  f.Output(0, results[1]);
  const ValueId i = f.Input(1, kNumber);
  f.Input(1, kRow);
  f.Output(1, f.Op(1, "Less", {i, f.Input(1, kNumber)}));
  const ValueId j = f.Input(2, kNumber), y = f.Input(2, kRow);
  f.Input(2, kNumber);
  f.Output(2, f.Op(2, "Add", {j, f.Number(2, 1)}));
  f.Output(2, f.Op(2, "Mul", {f.Op(2, "Mul", {y, f.Float(2, 1.5f)}), f.Float(2, 0.75f)}));
  return f.module;
}

// Lets rows have any length.
inline void OpenRows(Module* module) {
  for (Graph& graph : module->graphs) {
    for (uint32_t v = 0; v < graph.value_count(); ++v) {
      Value& value = graph.value(ValueId(v));
      if (value.constant == nullptr && value.type.dtype == DType::kF32)
        value.type = Type::Tensor(DType::kF32, {Dims{kUnknownDim}});
    }
  }
}

// Powers, but each iteration doubles the length of the rows.
inline Module GrowingPowers() {
  Module module = Powers();
  Graph& body = module.graphs[2];
  const auto longer = GraphBuilder(&body).Add(
      "Concat", "longer", {body.outputs[1], body.outputs[1]}, {{"axis", int64_t{0}}});
  MSRT_CHECK(longer.ok());
  body.outputs[1] = *longer;
  OpenRows(&module);
  return module;
}

// Returns, for each run, a number of iterations and a row.
inline std::vector<std::vector<ConstTensor>> Trips(const std::vector<int64_t>& counts, Dims dims) {
  std::vector<std::vector<ConstTensor>> runs;
  for (int64_t n : counts)
    runs.push_back({Number(n), RandomFloats(dims, static_cast<uint32_t>(n) + 7)});
  return runs;
}

}  // namespace msrt::testing
