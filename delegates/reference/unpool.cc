// MaxUnpool and Col2Im: write or add values into images that are initially zero.
#include <algorithm>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"
#include "ops/window.h"

namespace msrt::reference {
namespace {

// Indices refer to the image that was pooled, which is the first corner of a larger output.
Status MaxUnpool(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        TransposedWindowsOf(args.op, x.dims, args.op.Ints("kernel_shape")));
  Dims pooled = x.dims;
  for (int i = 0; i < windows.rank; ++i) pooled[2 + i] = windows.axis[static_cast<size_t>(i)].out;
  for (int i = 0; i < pooled.rank(); ++i) {
    if (pooled[i] > out.dims[i])
      return InvalidArgument("the output ", out.dims, " does not hold the unpooled ", pooled);
  }
  const Dims strides = RowMajorStrides(out.dims);
  const std::vector<int64_t> indices =
      IntValues(args.inputs[1].dtype, args.inputs[1].data, args.inputs[1].elements());
  const int64_t pooled_elements = pooled.elements();
  std::vector<int64_t> offsets(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t rest = indices[i];
    if (rest < 0 || rest >= pooled_elements)
      return InvalidArgument("element ", i, " of the indices is ", rest, ", must be in [0, ",
                             pooled_elements - 1, "]");
    for (int d = pooled.rank() - 1; d >= 0; --d) {
      offsets[i] += rest % pooled[d] * strides[d];
      rest /= pooled[d];
    }
  }
  return DispatchWidth(x.dtype, [&]<typename T>() -> Status {
    std::fill_n(out.As<T>(), out.elements(), T{0});
    for (size_t i = 0; i < offsets.size(); ++i) out.As<T>()[offsets[i]] = x.As<T>()[i];
    return OkStatus();
  });
}

// Adds one element of each block, the one at `tap` of the kernel, to an image. `column` has one
// value per block.
template <typename T>
void AddTap(const Windows& w, const std::array<int64_t, kMaxSpace>& tap, const T* column,
            std::vector<Wide<T>>* image) {
  const auto& [a0, a1, a2] = w.axis;
  for (int64_t y0 = 0; y0 < a0.out; ++y0) {
    const int64_t i0 = a0.start(y0) + tap[0] * a0.dilation;
    for (int64_t y1 = 0; y1 < a1.out; ++y1) {
      const int64_t i1 = a1.start(y1) + tap[1] * a1.dilation;
      for (int64_t y2 = 0; y2 < a2.out; ++y2, ++column) {
        const int64_t i2 = a2.start(y2) + tap[2] * a2.dilation;
        const bool inside = i0 >= 0 && i0 < a0.in && i1 >= 0 && i1 < a1.in && i2 >= 0 && i2 < a2.in;
        if (inside)
          (*image)[static_cast<size_t>((i0 * a1.in + i1) * a2.in + i2)] += ToWide(*column);
      }
    }
  }
}

Status Col2Im(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const std::vector<int64_t> block = args.IntsFrom("block_shape", 2);
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(args.op, out.dims, block));
  const auto& [a0, a1, a2] = windows.axis;
  const int64_t taps = a0.kernel * a1.kernel * a2.kernel, blocks = a0.out * a1.out * a2.out,
                pixels = a0.in * a1.in * a2.in;
  if (x.dims[1] != out.dims[1] * taps || x.dims[2] != blocks) {
    return InvalidArgument("input 0 is ", x.dims, ", an image ", out.dims, " has ", blocks,
                           " blocks of ", taps, " elements");
  }
  const int64_t height = a1.kernel, width = a2.kernel;
  return DispatchNumber(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(
        args.parallel, out.dims[0] * out.dims[1], 1, [&](int64_t begin, int64_t end) {
          std::vector<Wide<T>> image(static_cast<size_t>(pixels));
          for (int64_t plane = begin; plane < end; ++plane) {
            std::fill(image.begin(), image.end(), Wide<T>{0});
            for (int64_t t = 0; t < taps; ++t) {
              const std::array<int64_t, kMaxSpace> tap = {t / (height * width), t / width % height,
                                                          t % width};
              AddTap(windows, tap, x.As<T>() + (plane * taps + t) * blocks, &image);
            }
            std::transform(image.begin(), image.end(), out.As<T>() + plane * pixels, FromWide<T>);
          }
        });
  });
}

constexpr KernelDef kUnpoolKernels[] = {{"", "MaxUnpool", MaxUnpool}, {"", "Col2Im", Col2Im}};

}  // namespace

std::span<const KernelDef> UnpoolKernels() { return kUnpoolKernels; }

}  // namespace msrt::reference
