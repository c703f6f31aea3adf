#include <cstring>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

constexpr int64_t kGenerateGrain = 16384;

Status ConstantOfShape(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  return DispatchWidth(out.dtype, [&]<typename T>() -> Status {
    T value{};
    if (const ConstTensor* t = args.op.Tensor("value"))
      std::memcpy(&value, t->bytes.data(), sizeof(T));
    return ParallelRanges(args.parallel, out.elements(), kGenerateGrain,
                          [&](int64_t begin, int64_t end) {
                            std::fill(out.As<T>() + begin, out.As<T>() + end, value);
                          });
  });
}

// Computes every element from its index in the whole range, never from its neighbour, so that a
// piece has the bits of the whole.
Status Range(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t first = args.op.Int("piece_begin");
  return DispatchNumber(out.dtype, [&]<typename T>() -> Status {
    const T start = *args.inputs[0].As<T>(), delta = *args.inputs[2].As<T>();
    return ParallelRanges(
        args.parallel, out.elements(), kGenerateGrain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            if constexpr (kIsFloat<T>) {
              out.As<T>()[i] =
                  static_cast<T>(static_cast<double>(start) +
                                 static_cast<double>(first + i) * static_cast<double>(delta));
            } else {
              // The result is between start and limit, but the product may overflow: unsigned
              // arithmetic wraps.
              const auto step = static_cast<uint64_t>(first + i) * static_cast<uint64_t>(delta);
              out.As<T>()[i] = static_cast<T>(static_cast<uint64_t>(start) + step);
            }
          }
        });
  });
}

Status EyeLike(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int64_t columns = out.dims[1], k = args.op.Int("k");
  return Dispatch(out.dtype, [&]<typename T>() -> Status {
    T* to = out.As<T>();
    return ParallelRanges(args.parallel, out.dims[0], 64, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t column = 0; column < columns; ++column)
          to[row * columns + column] = static_cast<T>(column - row == k ? 1 : 0);
      }
    });
  });
}

Status Trilu(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const bool upper = args.op.Int("upper") != 0;
  const int64_t k = args.has_input(1) ? IntValues(args.inputs[1].dtype, args.inputs[1].data, 1)[0]
                                      : args.op.Int("k");
  const int rank = out.dims.rank();
  const int64_t rows = out.dims[rank - 2], columns = out.dims[rank - 1];
  return DispatchWidth(out.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(
        args.parallel, out.dims.product(0, rank - 1), 64, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t row = i % rows;
            for (int64_t column = 0; column < columns; ++column) {
              const bool kept = upper ? column - row >= k : column - row <= k;
              out.As<T>()[i * columns + column] = kept ? in.As<T>()[i * columns + column] : T{0};
            }
          }
        });
  });
}

constexpr KernelDef kGenerateKernels[] = {
    {"", "ConstantOfShape", ConstantOfShape},
    {"", "Range", Range},
    {"", "EyeLike", EyeLike},
    {"", "Trilu", Trilu},
};

}  // namespace

std::span<const KernelDef> GenerateKernels() { return kGenerateKernels; }

}  // namespace msrt::reference
