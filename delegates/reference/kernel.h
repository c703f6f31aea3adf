// A reference kernel: one function that computes a node with plain loops. It is the oracle of every
// test and the last resort of every placement, so it is written to be read, and every op has one.
#pragma once

#include <span>
#include <string_view>

#include "core/base/parallel_for.h"
#include "core/graph/op_view.h"
#include "core/graph/tensor.h"

namespace msrt::reference {

// Inputs and outputs are plain, dense and correctly typed and sized (type inference ensures it);
// outputs do not overlap inputs. Omitted inputs and unused outputs have null data. Tensors may be
// empty.
struct KernelArgs {
  const OpView& op;
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;
  ParallelFor& parallel;

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
  // Returns the list from the attribute, or from the data of an i32/i64 input; empty when both are
  // absent. (See IntsAttrOrInput.)
  std::vector<int64_t> IntsFrom(std::string_view attr, size_t input) const {
    if (op.Has(attr)) {
      const auto v = op.Ints(attr);
      return {v.begin(), v.end()};
    }
    if (!has_input(input)) return {};
    return IntValues(inputs[input].dtype, inputs[input].data, inputs[input].elements());
  }
};
// Fails only for reasons that the data decides at run time: an index out of range, lack of memory.
using KernelFn = Status (*)(const KernelArgs&);

struct KernelDef {
  std::string_view domain, op;
  KernelFn run;
};

// Returns null if there is none.
KernelFn FindKernel(std::string_view domain, std::string_view op);

// The pairs (input, output) of an optimizer that may share memory: tensors and state that it
// updates. Empty for other ops.
std::vector<std::pair<uint32_t, uint32_t>> OptimizerInPlace(const OpView& op);
std::vector<std::pair<uint32_t, uint32_t>> TrainingOptimizerInPlace(const OpView& op);

// The families, each defined at the end of delegates/reference/<family>.cc and listed in
// kernels.cc.
std::span<const KernelDef> UnaryKernels();
std::span<const KernelDef> UnaryGradKernels();
std::span<const KernelDef> BinaryKernels();
std::span<const KernelDef> MatMulKernels();
std::span<const KernelDef> ConvKernels();
std::span<const KernelDef> ConvGradKernels();
std::span<const KernelDef> PoolKernels();
std::span<const KernelDef> PoolGradKernels();
std::span<const KernelDef> ResizeKernels();
std::span<const KernelDef> ResizeGradKernels();
std::span<const KernelDef> NormalizationKernels();
std::span<const KernelDef> NormalizationGradKernels();
std::span<const KernelDef> SoftmaxKernels();
std::span<const KernelDef> SoftmaxGradKernels();
std::span<const KernelDef> ReduceKernels();
std::span<const KernelDef> SelectKernels();
std::span<const KernelDef> AttentionKernels();
std::span<const KernelDef> ShapeKernels();
std::span<const KernelDef> GenerateKernels();
std::span<const KernelDef> MovementKernels();
std::span<const KernelDef> GatherKernels();
std::span<const KernelDef> QuantizationKernels();
std::span<const KernelDef> QuantizedProductKernels();
std::span<const KernelDef> RecurrentKernels();
std::span<const KernelDef> FilterKernels();
std::span<const KernelDef> LossKernels();
std::span<const KernelDef> LossGradKernels();
std::span<const KernelDef> SamplingKernels();
std::span<const KernelDef> UnpoolKernels();
std::span<const KernelDef> DeformConvKernels();
std::span<const KernelDef> LocalResponseKernels();
std::span<const KernelDef> SignalKernels();
std::span<const KernelDef> SignalTableKernels();
std::span<const KernelDef> EinsumKernels();
std::span<const KernelDef> DeterminantKernels();
std::span<const KernelDef> DeterminantGradKernels();
std::span<const KernelDef> RotaryKernels();
std::span<const KernelDef> RandomKernels();
std::span<const KernelDef> MomentsKernels();
std::span<const KernelDef> OptimizerKernels();
std::span<const KernelDef> TrainingOptimizerKernels();
std::span<const KernelDef> NgramKernels();
std::span<const KernelDef> TreeEnsembleKernels();

}  // namespace msrt::reference
