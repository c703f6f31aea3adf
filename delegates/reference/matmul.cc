// Matrix products. Every element is one sum over the depth in ascending order, so its bits do not depend on which rows and
// columns are computed together.
#include "delegates/reference/activation.h"
#include "delegates/reference/broadcast.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

#include <algorithm>
#include <vector>

namespace msrt::reference {
namespace {

// One operand as a stack of matrices: the strides between its rows or columns and along the depth.
struct Operand {
  Dims batch, batch_strides;
  int64_t outer = 1, outer_stride = 0, depth_stride = 1;  // outer: rows of A, columns of B

  // `outer_first`: dims end in (outer, depth), otherwise in (depth, outer).
  Operand(const Dims& dims, bool outer_first) {
    if (dims.rank() == 1) return;
    const int at = dims.rank() - 2;
    batch = Dims(std::span<const int64_t>(dims).first(static_cast<size_t>(at)));
    outer = dims[outer_first ? at : at + 1];
    outer_stride = outer_first ? dims[at + 1] : 1;
    depth_stride = outer_first ? 1 : dims[at + 1];
  }
  // A batch stride counts whole matrices of `matrix` elements.
  void BroadcastTo(const Dims& to, int64_t matrix) {
    batch_strides = BroadcastStrides(batch, to);
    for (int64_t& s : batch_strides) s *= matrix;
  }
};

Dims BroadcastBatch(const Dims& a, const Dims& b) {
  Dims out = a.rank() > b.rank() ? a : b;
  const Dims& other = a.rank() > b.rank() ? b : a;
  const int shift = out.rank() - other.rank();
  for (int i = 0; i < other.rank(); ++i) {
    if (out[shift + i] == 1) out[shift + i] = other[i];
  }
  return out;
}

// Calls finish(index of the output element, sum) for every element of A' B', and stores what it returns.
template <typename T, typename Finish>
Status Multiply(const KernelArgs& args, bool transpose_a, bool transpose_b, const Finish& finish) {
  using Sum = Wide<T>;  // integers wrap modulo 2^64, which gives the right low bits for every type
  const Dims &a_dims = args.inputs[0].dims, &b_dims = args.inputs[1].dims;
  Operand a(a_dims, !transpose_a), b(b_dims, transpose_b);
  const int64_t depth = transpose_a ? a_dims[a_dims.rank() - 2] : a_dims.back();
  const Dims batch = BroadcastBatch(a.batch, b.batch);
  a.BroadcastTo(batch, a.outer * depth);
  b.BroadcastTo(batch, b.outer * depth);
  const T* a_data = args.inputs[0].As<T>();
  const T* b_data = args.inputs[1].As<T>();
  T* out = args.outputs[0].As<T>();
  const int64_t columns = b.outer;
  if (args.outputs[0].elements() == 0) return OkStatus();
  const int64_t grain = 1 + (int64_t{1} << 15) / (columns * std::max<int64_t>(depth, 1));
  return ParallelRanges(args.parallel, batch.elements() * a.outer, grain, [&](int64_t begin, int64_t end) {
    std::vector<Sum> sums(static_cast<size_t>(columns));
    for (int64_t row = begin; row < end; ++row) {
      const T* a_row = a_data + OffsetOf(row / a.outer, batch, a.batch_strides) + row % a.outer * a.outer_stride;
      const T* b_matrix = b_data + OffsetOf(row / a.outer, batch, b.batch_strides);
      std::fill(sums.begin(), sums.end(), Sum{0});
      for (int64_t k = 0; k < depth; ++k) {
        const Sum x = ToWide(a_row[k * a.depth_stride]);
        const T* b_row = b_matrix + k * b.depth_stride;
        for (int64_t n = 0; n < columns; ++n) sums[static_cast<size_t>(n)] += x * ToWide(b_row[n * b.outer_stride]);
      }
      for (int64_t n = 0; n < columns; ++n) {
        const int64_t index = row * columns + n;
        out[index] = FromWide<T>(finish(index, sums[static_cast<size_t>(n)]));
      }
    }
  });
}

// An optional input that broadcasts to the output, read as what sums are made of.
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

// Inference has made sure that factors of integers are whole.
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
    return Multiply<T>(args, args.op.Int("transA") != 0, args.op.Int("transB") != 0, [&](int64_t index, Wide<T> sum) {
      // Without C nothing is added, so that beta may be anything; and 0 * C is 0 whatever C holds, as in BLAS.
      return c.present() && beta != 0 ? alpha * sum + beta * c[index] : alpha * sum;
    });
  });
}

Status RunFusedMatMul(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const double alpha = args.op.Float("alpha");
    const Addend<T> bias(args, 2), residual(args, 3);
    const Activation activate(args.op);
    return Multiply<T>(args, args.op.Int("transA") != 0, args.op.Int("transB") != 0, [&](int64_t index, double sum) {
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
