// Ops that keep a part of their data. The functions that size their outputs (ops/filter.h) also
// find the part to keep.
#include "ops/filter.h"

#include <algorithm>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"

namespace msrt::reference {
namespace {

// Keeps writes within bounds if the caller changed the data between the sizing and the run.
Status CheckCount(size_t found, int64_t expected) {
  if (static_cast<int64_t>(found) == expected) return OkStatus();
  return InvalidArgument("the data gives ", found, " results where ", expected,
                         " were counted: it changed during the run");
}

Status NonZero(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const std::vector<int64_t> offsets = NonZeroOffsets(x);
  const int64_t count = out.dims[1];
  MSRT_RETURN_IF_ERROR(CheckCount(offsets.size(), count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = offsets[static_cast<size_t>(i)];
    for (int axis = x.dims.rank() - 1; axis >= 0; --axis) {
      out.As<int64_t>()[axis * count + i] = rest % x.dims[axis];
      rest /= x.dims[axis];
    }
  }
  return OkStatus();
}

// Copies the chosen slices along an axis, or the chosen elements if `axis` is kAllElements.
Status TakeSlices(const TensorView& x, int axis, std::span<const int64_t> chosen,
                  const TensorView& out) {
  const bool flat = axis == kAllElements;
  const int64_t outer = flat ? 1 : x.dims.product(0, axis),
                inner = flat ? 1 : x.dims.product(axis + 1, x.dims.rank());
  const int64_t extent = flat ? x.elements() : x.dims[axis];
  return DispatchWidth(x.dtype, [&]<typename T>() -> Status {
    T* to = out.As<T>();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i : chosen) to = std::copy_n(x.As<T>() + (o * extent + i) * inner, inner, to);
    }
    return OkStatus();
  });
}

Result<int> AxisOf(const KernelArgs& args) {
  if (!args.op.Has("axis")) return kAllElements;
  return CheckedAxis(args.op.Int("axis"), args.inputs[0].dims.rank());
}

Status Compress(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const int axis, AxisOf(args));
  const std::vector<int64_t> chosen = TrueIndices(args.inputs[1]);
  MSRT_RETURN_IF_ERROR(CheckCount(chosen.size(), args.outputs[0].dims[std::max(axis, 0)]));
  return TakeSlices(args.inputs[0], axis, chosen, args.outputs[0]);
}

Status Unique(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const int axis, AxisOf(args));
  const DistinctSlices found = FindDistinct(args.inputs[0], axis, args.op.Int("sorted") != 0);
  const std::vector<int64_t>* lists[] = {&found.first, &found.inverse, &found.counts};
  for (size_t i = 0; i < std::size(lists); ++i) {
    if (!args.has_output(i + 1)) continue;
    MSRT_RETURN_IF_ERROR(CheckCount(lists[i]->size(), args.outputs[i + 1].dims[0]));
    std::copy(lists[i]->begin(), lists[i]->end(), args.outputs[i + 1].As<int64_t>());
  }
  MSRT_RETURN_IF_ERROR(CheckCount(found.first.size(), args.outputs[0].dims[std::max(axis, 0)]));
  return TakeSlices(args.inputs[0], axis, found.first, args.outputs[0]);
}

Status NonMaxSuppression(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const SuppressionLimits limits, SuppressionLimitsOf(args.op, args.inputs));
  const auto selected = SelectBoxes(args.inputs[0], args.inputs[1], limits);
  MSRT_RETURN_IF_ERROR(CheckCount(selected.size(), args.outputs[0].dims[0]));
  int64_t* to = args.outputs[0].As<int64_t>();
  for (const auto& box : selected) to = std::copy(box.begin(), box.end(), to);
  return OkStatus();
}

constexpr KernelDef kFilterKernels[] = {
    {"", "NonZero", NonZero},
    {"", "Compress", Compress},
    {"", "Unique", Unique},
    {"", "NonMaxSuppression", NonMaxSuppression},
};

}  // namespace

std::span<const KernelDef> FilterKernels() { return kFilterKernels; }

}  // namespace msrt::reference
