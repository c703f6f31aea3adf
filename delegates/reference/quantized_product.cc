// Products of quantised tensors. Operands are taken as differences from their zero points, in
// double, where every sum of products of bytes is exact; the sum is then scaled and rounded once.
#include <cmath>
#include <vector>

#include "delegates/reference/activation.h"
#include "delegates/reference/broadcast.h"
#include "delegates/reference/conv.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/matmul.h"

namespace msrt::reference {
namespace {

// Inputs of the QLinear and of the fused ops.
constexpr size_t kA = 0, kAScale = 1, kAZero = 2, kB = 3, kBScale = 4, kBZero = 5, kYScale = 6,
                 kYZero = 7, kBias = 8, kZ = 9;

// A scale or zero point, read by the index of an element of a tensor of `dims`; `otherwise` if the
// input is omitted.
class Parameter {
 public:
  // `axis` is the axis of a list of several; other parameters broadcast.
  Parameter(const KernelArgs& args, size_t input, const Dims& dims, int axis, double otherwise)
      : dims_(dims) {
    if (!args.has_input(input)) {
      values_ = {otherwise};
      return;
    }
    values_ = Doubles(args.inputs[input]);
    const Dims& own = args.inputs[input].dims;
    if (values_.size() == 1) return;
    strides_ = own.rank() == 1 ? Dims::Filled(dims.rank(), 0) : BroadcastStrides(own, dims);
    if (own.rank() == 1) strides_[axis] = 1;
  }
  double operator[](int64_t index) const {
    return values_[strides_.empty() ? 0 : static_cast<size_t>(OffsetOf(index, dims_, strides_))];
  }

 private:
  std::vector<double> values_;
  Dims dims_, strides_;  // no strides: one value for all
};

// Returns the differences of an operand from its zero point.
std::vector<double> CentredValues(const KernelArgs& args, size_t data, size_t zero, int axis) {
  const Parameter zero_point(args, zero, args.inputs[data].dims, axis, 0);
  std::vector<double> values = Doubles(args.inputs[data]);
  for (size_t i = 0; i < values.size(); ++i) values[i] -= zero_point[static_cast<int64_t>(i)];
  return values;
}

// Stores sums of 32 bits, which wrap.
void StoreSums(const KernelArgs& args, const std::vector<double>& sums) {
  int32_t* y = args.outputs[0].As<int32_t>();
  for (size_t i = 0; i < sums.size(); ++i)
    y[i] = static_cast<int32_t>(static_cast<int64_t>(sums[i]));
}

// Multiplies every sum by factor(index) and quantises it.
template <typename Factor>
Status StoreQuantized(const KernelArgs& args, std::vector<double> sums, const Factor& factor) {
  const double zero = Doubles(args.inputs[kYZero])[0];
  const TensorView& y = args.outputs[0];
  const bool to_integer = WideTypeOf(y.dtype) != WideType::kDouble;
  return ForEachBlock(args.parallel, y.elements(), [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      double& value = sums[static_cast<size_t>(i)];
      value *= factor(i);
      value = (to_integer ? std::nearbyint(value) : value) + zero;
    }
    StoreElements(y.dtype, y.data, first, count, sums.data() + first);
  });
}

// Scales every sum by factor(index), adds bias and residual, applies the activation, and quantises
// the result if there is a y_scale.
template <typename Factor>
Status StoreFused(const KernelArgs& args, std::vector<double> values, const Factor& factor,
                  const Parameter& bias) {
  const Activation activation(args.op);
  const TensorView& y = args.outputs[0];
  const bool quantizes = args.has_input(kYScale);
  const double scale = quantizes ? Doubles(args.inputs[kYScale])[0] : 1,
               zero = quantizes ? Doubles(args.inputs[kYZero])[0] : 0;
  const float* residual = args.has_input(kZ) ? args.inputs[kZ].As<float>() : nullptr;
  return ForEachBlock(args.parallel, y.elements(), [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      double& value = values[static_cast<size_t>(i)];
      value = activation(value * factor(i) + bias[i] +
                         (residual == nullptr ? 0.0 : double{residual[i]}));
      if (quantizes) value = std::nearbyint(value / scale) + zero;
    }
    StoreElements(y.dtype, y.data, first, count, values.data() + first);
  });
}

// ---- matrices -----------------------------------------------------------------------------------

Result<std::vector<double>> MatrixSums(const KernelArgs& args, size_t a, size_t a_zero, size_t b,
                                       size_t b_zero) {
  const Dims &a_dims = args.inputs[a].dims, &b_dims = args.inputs[b].dims;
  const bool transposed = args.op.Int("transB") != 0;  // 0 for ops without it
  const auto a_values = CentredValues(args, a, a_zero, a_dims.rank() - 2);
  const auto b_values = CentredValues(args, b, b_zero, b_dims.rank() - (transposed ? 2 : 1));
  std::vector<double> sums(static_cast<size_t>(args.outputs[0].elements()));
  MSRT_RETURN_IF_ERROR(MultiplyMatrices<double>(
      args.parallel, a_values.data(), a_dims, false, b_values.data(), b_dims, transposed,
      [&](int64_t index, double sum) { sums[static_cast<size_t>(index)] = sum; }));
  return sums;
}

Status RunMatMulInteger(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<double> sums, MatrixSums(args, 0, 2, 1, 3));
  StoreSums(args, sums);
  return OkStatus();
}

// Returns the dims of the output with the axes that a vector operand removes.
Dims MatrixDims(const KernelArgs& args) {
  Dims dims = args.outputs[0].dims;
  if (args.inputs[kB].dims.rank() == 1) dims.push_back(1);
  if (args.inputs[kA].dims.rank() == 1) dims.insert(dims.rank() - 1, 1);
  return dims;
}

Status RunQLinearMatMul(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(std::vector<double> sums, MatrixSums(args, kA, kAZero, kB, kBZero));
  const Dims dims = MatrixDims(args);
  const Parameter a_scale(args, kAScale, dims, dims.rank() - 2, 1),
      b_scale(args, kBScale, dims, dims.rank() - 1, 1);
  const double y_scale = Doubles(args.inputs[kYScale])[0];
  return StoreQuantized(args, std::move(sums),
                        [&](int64_t i) { return a_scale[i] * b_scale[i] / y_scale; });
}

Status RunQuantizedMatMul(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(std::vector<double> sums, MatrixSums(args, kA, kAZero, kB, kBZero));
  const Dims dims = MatrixDims(args);
  const Parameter a_scale(args, kAScale, dims, dims.rank() - 2, 1),
      b_scale(args, kBScale, dims, dims.rank() - 1, 1);
  const Dims& out = args.outputs[0].dims;
  const Parameter bias(args, kBias, out, out.rank() - 1, 0);
  return StoreFused(
      args, std::move(sums), [&](int64_t i) { return a_scale[i] * b_scale[i]; }, bias);
}

// ---- convolutions -------------------------------------------------------------------------------

Result<std::vector<double>> ConvSums(const KernelArgs& args, size_t x, size_t x_zero, size_t w,
                                     size_t w_zero) {
  MSRT_ASSIGN_OR_RETURN(const ConvShape s,
                        ConvShapeOf(args.op, args.inputs[x].dims, args.inputs[w].dims, false));
  const auto x_values = CentredValues(args, x, x_zero, 0),
             w_values = CentredValues(args, w, w_zero, 0);
  std::vector<double> sums(static_cast<size_t>(args.outputs[0].elements()));
  const int64_t planes = args.inputs[x].dims[0] * s.channels.outputs;
  MSRT_RETURN_IF_ERROR(ParallelRanges(args.parallel, planes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      ConvPlane(s, false, x_values.data(), w_values.data(), p / s.channels.outputs,
                p % s.channels.outputs,
                [&](double sum, int64_t i) { sums[static_cast<size_t>(i)] = sum; });
    }
  }));
  return sums;
}

Status RunConvInteger(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const std::vector<double> sums, ConvSums(args, 0, 2, 1, 3));
  StoreSums(args, sums);
  return OkStatus();
}

Status RunQLinearConv(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(std::vector<double> sums, ConvSums(args, kA, kAZero, kB, kBZero));
  const Dims& dims = args.outputs[0].dims;
  const Parameter bias(args, kBias, dims, 1, 0), w_scale(args, kBScale, dims, 1, 1);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += bias[static_cast<int64_t>(i)];
  const double x_scale = Doubles(args.inputs[kAScale])[0],
               y_scale = Doubles(args.inputs[kYScale])[0];
  return StoreQuantized(args, std::move(sums),
                        [&](int64_t i) { return x_scale * w_scale[i] / y_scale; });
}

Status RunQuantizedConv(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(std::vector<double> sums, ConvSums(args, kA, kAZero, kB, kBZero));
  const Dims& dims = args.outputs[0].dims;
  const Parameter bias(args, kBias, dims, 1, 0), w_scale(args, kBScale, dims, 1, 1);
  const double x_scale = Doubles(args.inputs[kAScale])[0];
  return StoreFused(
      args, std::move(sums), [&](int64_t i) { return x_scale * w_scale[i]; }, bias);
}

constexpr KernelDef kQuantizedProductKernels[] = {
    {"", "MatMulInteger", RunMatMulInteger},
    {"", "QLinearMatMul", RunQLinearMatMul},
    {"", "ConvInteger", RunConvInteger},
    {"", "QLinearConv", RunQLinearConv},
    {"msrt", "QuantizedMatMul", RunQuantizedMatMul},
    {"msrt", "QuantizedConv", RunQuantizedConv},
};

}  // namespace

std::span<const KernelDef> QuantizedProductKernels() { return kQuantizedProductKernels; }

}  // namespace msrt::reference
