// msrt.ResizeGrad: the transpose of Resize, one axis after the other, in double.
#include <algorithm>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"
#include "ops/resample.h"

namespace msrt::reference {
namespace {

// Zeroes the elements of `values` that Resize did not interpolate.
void DropExtrapolated(const ResizeTable& table, const Dims& dims, int axis,
                      std::vector<double>* values) {
  const int64_t inner = dims.product(axis + 1, dims.rank());
  for (int64_t line = 0; line < dims.product(0, axis + 1); ++line) {
    if (!table.extrapolated[static_cast<size_t>(line % dims[axis])]) continue;
    std::fill_n(values->begin() + line * inner, inner, 0.0);
  }
}

// Adds each output of the axis to the `inputs` elements that it was interpolated from. `dims`
// become those of the result.
Result<std::vector<double>> SpreadAxis(ParallelFor& parallel, const std::vector<double>& from,
                                       const ResizeTable& table, bool nearest, int axis,
                                       int64_t inputs, Dims* dims) {
  const int64_t outputs = (*dims)[axis], outer = dims->product(0, axis),
                inner = dims->product(axis + 1, dims->rank());
  (*dims)[axis] = inputs;
  std::vector<double> to(static_cast<size_t>(dims->elements()));
  MSRT_RETURN_IF_ERROR(ParallelRanges(parallel, outer, 1, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t y = 0; y < outputs; ++y) {
        const double* source = from.data() + (o * outputs + y) * inner;
        for (size_t t = 0; t < table.count; ++t) {
          const size_t tap = static_cast<size_t>(y) * table.count + t;
          const double weight = nearest ? 1 : table.weight[tap];
          double* target = to.data() + (o * inputs + table.index[tap]) * inner;
          for (int64_t i = 0; weight != 0 && i < inner; ++i) target[i] += weight * source[i];
        }
      }
    }
  }));
  return to;
}

Status ResizeGrad(const KernelArgs& args) {
  const auto floats = [&](std::string_view attr, size_t input) {
    const auto given = args.op.Floats(attr);
    if (!args.has_input(input)) return std::vector<double>(given.begin(), given.end());
    const TensorView& t = args.inputs[input];
    return FloatValues(t.dtype, t.data, t.elements());
  };
  const ResizeLists lists{.roi = floats("roi", kResizeRoiInput),
                          .scales = floats("scales", kResizeScalesInput),
                          .sizes = args.IntsFrom("sizes", kResizeSizesInput)};
  const TensorView &grad = args.inputs[0], &out = args.outputs[0];
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(args.op, out.dims, lists));
  Dims dims = grad.dims;
  for (int i = 0; i < r.rank; ++i) {
    if (r.axis[static_cast<size_t>(i)].out != dims[i]) {
      return InvalidArgument("scales or sizes make axis ", i, " ",
                             r.axis[static_cast<size_t>(i)].out, " elements long, the gradient is ",
                             dims);
    }
  }
  std::vector<double> values(static_cast<size_t>(out.elements()));
  if (grad.elements() > 0 && out.elements() > 0) {
    std::vector<ResizeTable> tables;
    values = Doubles(grad);
    for (int i = 0; i < r.rank; ++i) {
      MSRT_ASSIGN_OR_RETURN(ResizeTable table, TableOf(r, r.axis[static_cast<size_t>(i)]));
      DropExtrapolated(table, dims, i, &values);
      tables.push_back(std::move(table));
    }
    for (int i = 0; i < r.rank; ++i) {
      const auto axis = static_cast<size_t>(i);
      if (r.Unchanged(r.axis[axis])) continue;
      MSRT_ASSIGN_OR_RETURN(
          values, SpreadAxis(args.parallel, values, tables[axis], r.mode == ResizeMode::kNearest, i,
                             out.dims[i], &dims));
    }
  }
  StoreElements(out.dtype, out.data, 0, out.elements(), values.data());
  return OkStatus();
}

constexpr KernelDef kResizeGradKernels[] = {{"msrt", "ResizeGrad", ResizeGrad}};

}  // namespace

std::span<const KernelDef> ResizeGradKernels() { return kResizeGradKernels; }

}  // namespace msrt::reference
