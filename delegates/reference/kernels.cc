#include <string>
#include <unordered_map>

#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr std::span<const KernelDef> (*kFamilies[])() = {
    UnaryKernels,
    UnaryGradKernels,
    BinaryKernels,
    MatMulKernels,
    ConvKernels,
    ConvGradKernels,
    PoolKernels,
    PoolGradKernels,
    ResizeKernels,
    ResizeGradKernels,
    NormalizationKernels,
    NormalizationGradKernels,
    SoftmaxKernels,
    SoftmaxGradKernels,
    ReduceKernels,
    SelectKernels,
    AttentionKernels,
    ShapeKernels,
    GenerateKernels,
    MovementKernels,
    GatherKernels,
    QuantizationKernels,
    QuantizedProductKernels,
    RecurrentKernels,
    FilterKernels,
    LossKernels,
    LossGradKernels,
    SamplingKernels,
    UnpoolKernels,
    DeformConvKernels,
    LocalResponseKernels,
    SignalKernels,
    SignalTableKernels,
    EinsumKernels,
    DeterminantKernels,
    DeterminantGradKernels,
    RotaryKernels,
    RandomKernels,
    MomentsKernels,
    OptimizerKernels,
    TrainingOptimizerKernels,
    NgramKernels,
    TreeEnsembleKernels,
};

std::string Key(std::string_view domain, std::string_view op) { return StrCat(domain, ".", op); }

}  // namespace

KernelFn FindKernel(std::string_view domain, std::string_view op) {
  static const auto table = [] {
    std::unordered_map<std::string, KernelFn> t;
    for (auto family : kFamilies) {
      for (const KernelDef& k : family()) t.emplace(Key(k.domain, k.op), k.run);
    }
    return t;
  }();
  const auto it = table.find(Key(domain, op));
  return it == table.end() ? nullptr : it->second;
}

}  // namespace msrt::reference
