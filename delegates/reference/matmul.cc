// MatMul, Gemm and their fused form.
#include "delegates/reference/matmul.h"

#include "delegates/reference/activation.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

// Stores what finish(index of the output element, sum) returns for every element of A' B'.
template <typename T, typename Finish>
Status Multiply(const KernelArgs& args, bool transpose_a, bool transpose_b, const Finish& finish) {
  const TensorView &a = args.inputs[0], &b = args.inputs[1];
  T* out = args.outputs[0].As<T>();
  return MultiplyMatrices<T>(
      args.parallel, a.As<T>(), a.dims, transpose_a, b.As<T>(), b.dims, transpose_b,
      [&](int64_t index, Wide<T> sum) { out[index] = FromWide<T>(finish(index, sum)); });
}

// An optional input that broadcasts to the output, read in the type of the sums.
template <typename T>
struct Addend {
  const T* data = nullptr;
  Dims dims, strides;

  Addend(const KernelArgs& args, size_t input) {
    if (!args.has_input(input)) return;
    data = args.inputs[input].As<T>();
    dims = args.outputs[0].dims;
    strides = BroadcastStrides(args.inputs[input].dims, dims);
  }
  bool present() const { return data != nullptr; }
  Wide<T> operator[](int64_t index) const { return ToWide(data[OffsetOf(index, dims, strides)]); }
};

// Inference ensures that factors of integer products are integers.
template <typename T>
Wide<T> Factor(double value) {
  if constexpr (kIsFloat<T>) return value;
  else return static_cast<uint64_t>(static_cast<int64_t>(value));
}

Status RunMatMul(const KernelArgs& args) {
  return DispatchNumber(args.inputs[0].dtype, [&]<typename T>() -> Status {
    return Multiply<T>(args, false, false, [](int64_t, Wide<T> sum) { return sum; });
  });
}

Status RunGemm(const KernelArgs& args) {
  return DispatchNumber(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const auto alpha = Factor<T>(args.op.Float("alpha")), beta = Factor<T>(args.op.Float("beta"));
    const Addend<T> c(args, 2);
    return Multiply<T>(args, args.op.Int("transA") != 0, args.op.Int("transB") != 0,
                       [&](int64_t index, Wide<T> sum) {
                         // Without C nothing is added, whatever beta is; and 0 * C is 0 whatever C
                         // holds, as in BLAS.
                         return c.present() && beta != 0 ? alpha * sum + beta * c[index]
                                                         : alpha * sum;
                       });
  });
}

Status RunFusedMatMul(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const double alpha = args.op.Float("alpha");
    const Addend<T> bias(args, 2), residual(args, 3);
    const Activation activate(args.op);
    return Multiply<T>(args, args.op.Int("transA") != 0, args.op.Int("transB") != 0,
                       [&](int64_t index, double sum) {
                         double x = alpha * sum;
                         if (bias.present()) x += bias[index];
                         if (residual.present()) x += residual[index];
                         return activate(x);
                       });
  });
}

constexpr KernelDef kMatMulKernels[] = {
    {"", "MatMul", RunMatMul},
    {"", "Gemm", RunGemm},
    {"msrt", "FusedMatMul", RunFusedMatMul},
};

}  // namespace

std::span<const KernelDef> MatMulKernels() { return kMatMulKernels; }

}  // namespace msrt::reference
