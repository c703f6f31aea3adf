// Gathers and scatters with plain loops. Indices are known only at run time, so each kernel first
// turns them into checked offsets and only then moves elements.
#include <algorithm>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/lines.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// ---- from indices to offsets --------------------------------------------------------------------

Dims PositionOf(int64_t element, const Dims& dims) {
  Dims position = dims;
  for (int i = dims.rank() - 1; i >= 0; --i) {
    position[i] = element % dims[i];
    element /= dims[i];
  }
  return position;
}

// Returns element `element` of the indices as a non-negative index; the error names its position
// and the valid range.
Result<int64_t> CheckedIndex(const TensorView& indices, int64_t element, int64_t value,
                             int64_t extent, int axis) {
  if (value >= -extent && value < extent) return value < 0 ? value + extent : value;
  const Dims position = PositionOf(element, indices.dims);
  if (extent == 0)
    return InvalidArgument("indices", position, " = ", value, ", but axis ", axis,
                           " of data is empty");
  return InvalidArgument("indices", position, " = ", value, ", must be in [", -extent, ", ",
                         extent - 1, "] for axis ", axis, " of data");
}

// Returns all indices, each along the same axis.
Result<std::vector<int64_t>> CheckedIndices(const TensorView& indices, int64_t extent, int axis) {
  std::vector<int64_t> values = IntValues(indices.dtype, indices.data, indices.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    MSRT_ASSIGN_OR_RETURN(values[i],
                          CheckedIndex(indices, static_cast<int64_t>(i), values[i], extent, axis));
  }
  return values;
}

// Returns, for each element of `indices`, the offset of the data element that it names: the one at
// the same position except along the axis.
Result<std::vector<int64_t>> ElementOffsets(const TensorView& indices, const Dims& data, int axis) {
  MSRT_ASSIGN_OR_RETURN(auto offsets, CheckedIndices(indices, data[axis], axis));
  const Dims strides = RowMajorStrides(data);
  for (size_t i = 0; i < offsets.size(); ++i) {
    Dims position = PositionOf(static_cast<int64_t>(i), indices.dims);
    position[axis] = offsets[i];
    offsets[i] = 0;
    for (int d = 0; d < data.rank(); ++d) offsets[i] += position[d] * strides[d];
  }
  return offsets;
}

// Returns, for each index tuple, the offset of the slice of data that it names.
Result<std::vector<int64_t>> SliceOffsets(const TensorView& indices, const Dims& data,
                                          int batch_dims) {
  const std::vector<int64_t> values = IntValues(indices.dtype, indices.data, indices.elements());
  const Dims strides = RowMajorStrides(data);
  const int64_t tuple = indices.dims.back(),
                tuples = indices.dims.product(0, indices.dims.rank() - 1);
  const int64_t tuples_in_batch = indices.dims.product(batch_dims, indices.dims.rank() - 1);
  const int64_t batch_elements = data.product(batch_dims, data.rank());
  std::vector<int64_t> offsets(static_cast<size_t>(tuples));
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t offset = t / tuples_in_batch * batch_elements;
    for (int64_t i = 0; i < tuple; ++i) {
      const int64_t element = t * tuple + i;
      const int axis = batch_dims + static_cast<int>(i);
      MSRT_ASSIGN_OR_RETURN(
          const int64_t at,
          CheckedIndex(indices, element, values[static_cast<size_t>(element)], data[axis], axis));
      offset += at * strides[axis];
    }
    offsets[static_cast<size_t>(t)] = offset;
  }
  return offsets;
}

// ---- gathers ------------------------------------------------------------------------------------

Status Gather(const KernelArgs& args) {
  const TensorView &data = args.inputs[0], &indices = args.inputs[1], &out = args.outputs[0];
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), data.dims.rank()));
  MSRT_ASSIGN_OR_RETURN(const auto rows, CheckedIndices(indices, data.dims[axis], axis));
  const Lines along(data.dims, axis);
  const auto count = static_cast<int64_t>(rows.size());
  return DispatchWidth(data.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, along.outer * count, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / count * along.count + rows[static_cast<size_t>(i % count)];
        std::copy_n(data.As<T>() + row * along.inner, along.inner, out.As<T>() + i * along.inner);
      }
    });
  });
}

// Copies `slice` elements from each offset of the data, one after the other.
Status CopySlices(const KernelArgs& args, std::span<const int64_t> offsets, int64_t slice) {
  const TensorView &data = args.inputs[0], &out = args.outputs[0];
  if (slice == 0) return OkStatus();  // no offset is within the data
  return DispatchWidth(data.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, static_cast<int64_t>(offsets.size()), 64,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              std::copy_n(data.As<T>() + offsets[static_cast<size_t>(i)], slice,
                                          out.As<T>() + i * slice);
                            }
                          });
  });
}

Status GatherElements(const KernelArgs& args) {
  const Dims& data = args.inputs[0].dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), data.rank()));
  MSRT_ASSIGN_OR_RETURN(const auto offsets, ElementOffsets(args.inputs[1], data, axis));
  return CopySlices(args, offsets, 1);
}

Status GatherND(const KernelArgs& args) {
  const TensorView &data = args.inputs[0], &indices = args.inputs[1];
  const auto batch_dims = static_cast<int>(args.op.Int("batch_dims"));
  MSRT_ASSIGN_OR_RETURN(const auto offsets, SliceOffsets(indices, data.dims, batch_dims));
  return CopySlices(
      args, offsets,
      data.dims.product(batch_dims + static_cast<int>(indices.dims.back()), data.dims.rank()));
}

// ---- scatters -----------------------------------------------------------------------------------

// Writes the updates; where several have the same offset, the last one wins.
Status Replace(const KernelArgs& args, std::span<const int64_t> offsets, int64_t slice) {
  const TensorView &data = args.inputs[0], &updates = args.inputs[2], &out = args.outputs[0];
  return DispatchWidth(data.dtype, [&]<typename T>() -> Status {
    std::copy_n(data.As<T>(), data.elements(), out.As<T>());
    for (size_t i = 0; i < offsets.size(); ++i) {
      std::copy_n(updates.As<T>() + static_cast<int64_t>(i) * slice, slice,
                  out.As<T>() + offsets[i]);
    }
    return OkStatus();
  });
}

// Folds the updates into the data with join(accumulated, update), wide, and rounds once at the end.
template <typename Join>
Status Fold(const KernelArgs& args, std::span<const int64_t> offsets, int64_t slice, Join join) {
  const TensorView &data = args.inputs[0], &updates = args.inputs[2], &out = args.outputs[0];
  return DispatchNumber(data.dtype, [&]<typename T>() -> Status {
    const int64_t elements = data.elements();
    std::vector<Wide<T>> wide(static_cast<size_t>(elements));
    std::transform(data.As<T>(), data.As<T>() + elements, wide.begin(), ToWide<T>);
    for (size_t i = 0; i < offsets.size(); ++i) {
      const T* update = updates.As<T>() + static_cast<int64_t>(i) * slice;
      for (int64_t j = 0; j < slice; ++j) {
        Wide<T>& target = wide[static_cast<size_t>(offsets[i] + j)];
        target = join.template operator()<T>(target, ToWide(update[j]));
      }
    }
    std::transform(wide.begin(), wide.end(), out.As<T>(), FromWide<T>);
    return OkStatus();
  });
}

Status Scatter(const KernelArgs& args, std::span<const int64_t> offsets, int64_t slice) {
  if (slice == 0) return OkStatus();  // the data is empty too
  const std::string_view reduction = args.op.String("reduction");
  if (reduction == "add")
    return Fold(args, offsets, slice,
                []<typename T>(Wide<T> a, Wide<T> b) -> Wide<T> { return a + b; });
  if (reduction == "mul")
    return Fold(args, offsets, slice,
                []<typename T>(Wide<T> a, Wide<T> b) -> Wide<T> { return a * b; });
  // Integers are compared in their own type: the wide form of a signed one has lost its sign.
  if (reduction == "max") {
    return Fold(args, offsets, slice, []<typename T>(Wide<T> a, Wide<T> b) -> Wide<T> {
      return static_cast<Wide<T>>(
          GreaterOf(static_cast<SumType<T>>(a), static_cast<SumType<T>>(b)));
    });
  }
  if (reduction == "min") {
    return Fold(args, offsets, slice, []<typename T>(Wide<T> a, Wide<T> b) -> Wide<T> {
      return static_cast<Wide<T>>(LesserOf(static_cast<SumType<T>>(a), static_cast<SumType<T>>(b)));
    });
  }
  return Replace(args, offsets, slice);
}

Status ScatterElements(const KernelArgs& args) {
  const Dims& data = args.inputs[0].dims;
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), data.rank()));
  MSRT_ASSIGN_OR_RETURN(const auto offsets, ElementOffsets(args.inputs[1], data, axis));
  return Scatter(args, offsets, 1);
}

Status ScatterND(const KernelArgs& args) {
  const TensorView &data = args.inputs[0], &indices = args.inputs[1];
  MSRT_ASSIGN_OR_RETURN(const auto offsets, SliceOffsets(indices, data.dims, 0));
  return Scatter(args, offsets,
                 data.dims.product(static_cast<int>(indices.dims.back()), data.dims.rank()));
}

// ---- OneHot -------------------------------------------------------------------------------------

// Returns the class that an index of any number type names, or -1.
template <typename T>
int64_t ClassOf(T index, int64_t depth) {
  int64_t i;
  if constexpr (kIsFloat<T>) i = FromDouble<int64_t>(static_cast<double>(index));
  else if constexpr (std::is_same_v<T, uint64_t>)
    i = static_cast<int64_t>(std::min<uint64_t>(index, INT64_MAX));
  else i = index;
  if (i < -depth || i >= depth) return -1;
  return i < 0 ? i + depth : i;
}

Status OneHot(const KernelArgs& args) {
  const TensorView &indices = args.inputs[0], &values = args.inputs[2], &out = args.outputs[0];
  MSRT_ASSIGN_OR_RETURN(const int axis, CheckedAxis(args.op.Int("axis"), out.dims.rank()));
  const int64_t depth = args.op.Has("depth")
                            ? args.op.Int("depth")
                            : IntValues(args.inputs[1].dtype, args.inputs[1].data, 1)[0];
  if (depth < 0) return InvalidArgument("depth = ", depth, ", must be at least 0");
  const int64_t class_begin = args.op.Int("class_begin");
  const Lines along(out.dims, axis);

  std::vector<int64_t> classes(static_cast<size_t>(indices.elements()));
  MSRT_RETURN_IF_ERROR(DispatchNumber(indices.dtype, [&]<typename T>() -> Status {
    for (size_t i = 0; i < classes.size(); ++i) classes[i] = ClassOf(indices.As<T>()[i], depth);
    return OkStatus();
  }));
  return DispatchWidth(values.dtype, [&]<typename T>() -> Status {
    const T off = values.As<T>()[0], on = values.As<T>()[1];
    for (int64_t i = 0; i < static_cast<int64_t>(classes.size()); ++i) {
      T* line = out.As<T>() + along.First(i);
      for (int64_t c = 0; c < along.count; ++c)
        line[c * along.inner] = classes[static_cast<size_t>(i)] == class_begin + c ? on : off;
    }
    return OkStatus();
  });
}

constexpr KernelDef kGatherKernels[] = {
    {"", "Gather", Gather},       {"", "GatherElements", GatherElements},
    {"", "GatherND", GatherND},   {"", "ScatterElements", ScatterElements},
    {"", "ScatterND", ScatterND}, {"", "OneHot", OneHot},
};

}  // namespace

std::span<const KernelDef> GatherKernels() { return kGatherKernels; }

}  // namespace msrt::reference
