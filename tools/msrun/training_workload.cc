#include "tools/msrun/training_workload.h"

#include "tools/msrun/value_files.h"

namespace msrt {

Result<TrainingSpec> TrainingSpecOf(const Arguments& a) {
  TrainingSpec spec;
  MSRT_ASSIGN_OR_RETURN(spec.optimizer, ParseOptimizer(a.training));
  spec.loss.kind = a.loss == "mse" ? LossKind::kMeanSquares : LossKind::kCrossEntropy;
  return spec;
}

Result<RunValue> RandomTrainingValue(const Graph& graph, ValueId input, const Dims& dims,
                                     int64_t classes, std::mt19937_64& random) {
  constexpr float kRate = 1e-4f;
  const Value& value = graph.value(input);
  if (value.name == "learning_rate" && value.type.dtype == DType::kF32)
    return ValueOf(ConstTensor::Floats({}, {&kRate, 1}));
  if (value.name == "target" && value.type.dtype == DType::kI64) {
    std::vector<int64_t> labels(static_cast<size_t>(dims.elements()));
    for (int64_t& label : labels)
      label = static_cast<int64_t>(random() % static_cast<uint64_t>(classes));
    return ValueOf(ConstTensor::Of<int64_t>(DType::kI64, dims, labels));
  }
  return RandomValue(graph, input, dims, random);
}

}  // namespace msrt
