// Networks of the zoo with made-up weights, and made-up batches, that
// tests/data/generate/training.py makes too.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "core/train/dataset.h"
#include "core/train/parameters.h"
#include "ops/validate.h"
#include "tools/msconvert/zoo.h"

namespace msrt::testing {

// `count` numbers in [0, 1).
inline std::vector<double> Uniform(uint64_t stream, int64_t count) {
  std::vector<double> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    uint64_t z = ((stream << 32) + i) * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    numbers[i] = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  return numbers;
}

inline ConstTensor TensorOf(DType dtype, Dims dims, const std::vector<double>& numbers) {
  if (dtype == DType::kF64) return ConstTensor::Of<double>(dtype, dims, numbers);
  const std::vector<float> floats(numbers.begin(), numbers.end());
  return ConstTensor::Floats(dims, floats);
}

inline ConstTensor MadeWeight(size_t number, DType dtype, const Dims& dims, double center) {
  const double inputs = static_cast<double>(dims.rank() > 1 ? dims.product(1, dims.rank()) : 1);
  const double bound = dims.rank() > 1 ? std::sqrt(3.0 / inputs) : 0.05;
  std::vector<double> numbers = Uniform(1000 + number, dims.elements());
  for (double& x : numbers) x = (2 * x - 1) * bound + center;
  return TensorOf(dtype, dims, numbers);
}

// Numbers of classes below `classes`.
inline ConstTensor MadeClasses(uint64_t stream, const Dims& dims, int64_t classes) {
  std::vector<int64_t> numbers;
  for (double x : Uniform(stream, dims.elements()))
    numbers.push_back(static_cast<int64_t>(x * static_cast<double>(classes)));
  return ConstTensor::Of<int64_t>(DType::kI64, dims, numbers);
}

inline Batch MadeBatch(int number, DType dtype, Dims dims, int64_t classes) {
  const auto stream = static_cast<uint64_t>(number) * 2;
  Batch batch;
  batch.tensors = {TensorOf(dtype, dims, Uniform(stream + 1, dims.elements())),
                   MadeClasses(stream + 2, {dims[0]}, classes)};
  batch.samples = batch.global_samples = dims[0];
  return batch;
}

// The network with all floats in `dtype`, and its parameters by MadeWeight in their order.
inline Module ZooModule(const std::string& network, DType dtype, const zoo::Options& options = {}) {
  auto built = zoo::Build(network, options);
  if (!built.ok()) return ADD_FAILURE() << built.status().message(), Module();
  Module module = *std::move(built);
  Graph& graph = module.main();
  EXPECT_TRUE(Validate(&module).ok());
  auto parameters = FindParameters(graph, {});
  if (!parameters.ok()) return ADD_FAILURE() << parameters.status().message(), Module();
  for (size_t p = 0; p < parameters->size(); ++p) {
    Value& value = graph.value((*parameters)[p].constant);
    const double center = value.name.find("scale") != std::string::npos ? 1 : 0;
    value.constant =
        std::make_shared<ConstTensor>(MadeWeight(p, dtype, value.constant->dims, center));
  }
  // Running statistics begin with 0 and 1.
  for (const Node& node : graph.nodes) {
    if (node.op != "BatchNormalization") continue;
    for (size_t i : {3, 4}) {
      Value& value = graph.value(node.inputs[i]);
      const std::vector<double> numbers(value.constant->As<float>().size(), i == 3 ? 0 : 1);
      value.constant =
          std::make_shared<ConstTensor>(TensorOf(dtype, value.constant->dims, numbers));
    }
  }
  for (uint32_t v = 0; v < graph.value_count(); ++v) {
    Type& type = graph.value(ValueId{v}).type;
    if (type.dtype == DType::kF32) type.dtype = dtype;
  }
  return module;
}

}  // namespace msrt::testing
