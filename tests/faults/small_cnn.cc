#include "tests/faults/small_cnn.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "core/model/write.h"
#include "ops/builder.h"

namespace msrt::testing {
namespace {

std::vector<float> Wave(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7));
  return values;
}

ValueId Weights(Graph& graph, Dims dims) {
  return graph.AddConstant("w", ConstTensor::Floats(dims, Wave(dims.elements())));
}

}  // namespace

Module SmallCnn() {
  Module module;
  module.name = "small cnn";
  module.entries = {0};
  module.states.push_back(
      {"last", Type::Tensor(DType::kF32, {1, 5}), ConstTensor::Floats({1, 5}, Wave(5))});
  Graph& graph = module.graphs.emplace_back();
  graph.name = "main";
  GraphBuilder builder(&graph);
  const auto add = [&](std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    return *builder.Add(op, StrCat("n", graph.nodes.size()), std::move(inputs), std::move(attrs));
  };
  const ValueId x = graph.AddInput(
      "x", Type::Tensor(DType::kF32, {module.SymbolFor("batch"), 2, kUnknownDim, 8}));
  ValueId y = add("Conv", {x, Weights(graph, {8, 2, 3, 3}), Weights(graph, {8})},
                  {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  y = add("Relu", {y});
  y = add("MaxPool", {y},
          {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  y = add("Conv", {y, Weights(graph, {8, 8, 3, 3})});
  y = add("GlobalAveragePool", {y});
  y = add("Gemm", {add("Flatten", {y}), Weights(graph, {8, 5}), Weights(graph, {5})});
  y = add("Softmax", {y});
  const auto last = builder.Add(
      "msrt", "StateRead", "read", {},
      {{"slot", int64_t{0}}, {"dtype", DType::kF32}, {"dims", std::vector<int64_t>{1, 5}}}, 1);
  graph.outputs = {add("Add", {y, (*last)[0]})};
  (void)builder.Add("msrt", "StateWrite", "write", {graph.outputs[0]}, {{"slot", int64_t{0}}}, 0);
  return module;
}

const std::string& SmallCnnFile() {
  static const std::string path = [] {
    std::string name =
        StrCat(::testing::TempDir(), "small_cnn_", static_cast<int64_t>(getpid()), ".msrt");
    const Status status = WriteModel(SmallCnn(), name, DefaultIo());
    EXPECT_TRUE(status.ok()) << status.message();
    return name;
  }();
  return path;
}

std::vector<float> SmallCnnInput() { return Wave(2 * 8 * 8); }

bool Close(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= 1e-5f)) return false;
  }
  return true;
}

}  // namespace msrt::testing
