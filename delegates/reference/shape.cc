#include <cstring>

#include "delegates/reference/copy.h"
#include "delegates/reference/kernel.h"

namespace msrt::reference {
namespace {

// Reshape, Squeeze, Unsqueeze, Flatten: the same elements in the same order.
Status View(const KernelArgs& args) {
  const TensorView& in = args.inputs[0];
  const size_t bytes = BytesOf(in.dtype, in.elements());
  if (bytes != 0) std::memcpy(args.outputs[0].data, in.data, bytes);
  return OkStatus();
}

Status Shape(const KernelArgs& args) {
  const Dims& dims = args.inputs[0].dims;
  const int64_t rank = dims.rank(), start = args.op.Int("start");
  const int64_t first = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  std::copy_n(dims.begin() + first, args.outputs[0].elements(), args.outputs[0].As<int64_t>());
  return OkStatus();
}

Status Size(const KernelArgs& args) {
  *args.outputs[0].As<int64_t>() = args.inputs[0].elements();
  return OkStatus();
}

Status Expand(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const Dims from = RowMajorStrides(in.dims);
  Dims strides = Dims::Filled(out.dims.rank(), 0);
  for (int i = 0; i < in.dims.rank(); ++i) {
    if (in.dims[i] != 1) strides[out.dims.rank() - in.dims.rank() + i] = from[i];
  }
  return StridedCopy(args.parallel, in.dtype, in.data, 0, strides, out.dims, out.data);
}

constexpr KernelDef kShapeKernels[] = {
    {"", "Reshape", View}, {"", "Squeeze", View}, {"", "Unsqueeze", View}, {"", "Flatten", View},
    {"", "Shape", Shape},  {"", "Size", Size},    {"", "Expand", Expand},
};

}  // namespace

std::span<const KernelDef> ShapeKernels() { return kShapeKernels; }

}  // namespace msrt::reference
