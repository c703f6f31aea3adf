#include <cstring>

#include "core/base/checked_math.h"
#include "core/region/pad.h"
#include "core/region/slice.h"
#include "delegates/reference/copy.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

int PositiveAxis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

Status Transpose(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const int rank = in.dims.rank();
  const auto perm = args.op.Ints("perm");
  const Dims from = RowMajorStrides(in.dims);
  Dims strides = from;
  for (int i = 0; i < rank; ++i)
    strides[i] = from[perm.empty() ? rank - 1 - i : static_cast<int>(perm[static_cast<size_t>(i)])];
  return StridedCopy(args.parallel, in.dtype, in.data, 0, strides, out.dims, out.data);
}

// Copies `bytes` of each row; rows are from_stride and to_stride bytes apart.
Status CopyRows(ParallelFor& parallel, int64_t rows, const std::byte* from, size_t from_stride,
                std::byte* to, size_t to_stride, size_t bytes) {
  if (bytes == 0) return OkStatus();
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(65536 / bytes));
  return ParallelRanges(parallel, rows, grain, [&](int64_t begin, int64_t end) {
    for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end); ++row) {
      std::memcpy(to + row * to_stride, from + row * from_stride, bytes);
    }
  });
}

size_t RowBytes(const TensorView& t, int axis) {
  return BytesOf(t.dtype, t.dims.product(axis, t.dims.rank()));
}

Status Concat(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const int axis = PositiveAxis(args.op.Int("axis"), out.dims.rank());
  const int64_t rows = out.dims.product(0, axis);
  const size_t out_bytes = RowBytes(out, axis);
  auto* to = out.As<std::byte>();
  for (const TensorView& in : args.inputs) {
    const size_t bytes = RowBytes(in, axis);
    MSRT_RETURN_IF_ERROR(
        CopyRows(args.parallel, rows, in.As<std::byte>(), bytes, to, out_bytes, bytes));
    to += bytes;
  }
  return OkStatus();
}

Status Split(const KernelArgs& args) {
  const TensorView& in = args.inputs[0];
  const int axis = PositiveAxis(args.op.Int("axis"), in.dims.rank());
  const int64_t rows = in.dims.product(0, axis);
  const size_t in_bytes = RowBytes(in, axis), step = RowBytes(in, axis + 1);
  const auto* from = in.As<std::byte>();
  // Takes the sizes from the attributes, since an unused output has none.
  auto sizes = args.IntsFrom("split", 1);
  if (sizes.empty()) {
    const auto count = static_cast<int64_t>(args.outputs.size());
    const int64_t part = CeilDiv(in.dims[axis], count);
    sizes.assign(args.outputs.size(), part);
    sizes.back() = in.dims[axis] - part * (count - 1);
  }
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    const size_t bytes = static_cast<size_t>(sizes[i]) * step;
    if (args.has_output(i)) {
      MSRT_RETURN_IF_ERROR(CopyRows(args.parallel, rows, from, in_bytes,
                                    args.outputs[i].As<std::byte>(), bytes, bytes));
    }
    from += bytes;
  }
  return OkStatus();
}

Status Slice(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const int rank = in.dims.rank();
  const auto starts = args.IntsFrom("starts", 1), ends = args.IntsFrom("ends", 2);
  const auto axes = args.IntsFrom("axes", 3), steps = args.IntsFrom("steps", 4);
  Dims strides = RowMajorStrides(in.dims);
  int64_t first = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int axis = axes.empty() ? static_cast<int>(i) : PositiveAxis(axes[i], rank);
    const SliceAxis slice =
        NormalizeSlice(starts[i], ends[i], steps.empty() ? 1 : steps[i], in.dims[axis]);
    first += slice.start * strides[axis];
    strides[axis] *= slice.step;
  }
  return StridedCopy(args.parallel, in.dtype, in.data, first, strides, out.dims, out.data);
}

Status Tile(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const Dims strides = RowMajorStrides(in.dims);
  const auto piece = args.op.Ints("piece_begin");
  const Dims begin = piece.empty() ? Dims::Filled(in.dims.rank(), 0) : Dims(piece);
  return DispatchWidth(in.dtype, [&]<typename T>() -> Status {
    return CopyByAxis(
        args.parallel, in.As<const T>(), out.dims, out.As<T>(), T{},
        [&](int axis, int64_t i) { return (begin[axis] + i) % in.dims[axis] * strides[axis]; });
  });
}

// Returns the bits of the constant that surrounds the input.
template <typename T>
Result<T> PadValue(const KernelArgs& args) {
  T bits{};
  if (args.has_input(2)) {
    std::memcpy(&bits, args.inputs[2].data, sizeof(T));
  } else if (args.op.Float("value") != 0) {  // always 0 for f8: inference refuses others
    MSRT_RETURN_IF_ERROR(Dispatch(args.inputs[0].dtype, [&]<typename E>() -> Status {
      E value;
      if constexpr (std::is_same_v<E, bool>) value = true;
      else value = FromDouble<E>(args.op.Float("value"));
      std::memcpy(&bits, &value, std::min(sizeof(E), sizeof(T)));
      return OkStatus();
    }));
  }
  return bits;
}

Status Pad(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const int rank = in.dims.rank();
  const PadAmounts amounts = SpreadPads(args.IntsFrom("pads", 1), args.IntsFrom("axes", 3), rank);
  const bool is_piece = args.op.Has("whole_dims");
  const Dims whole = is_piece ? Dims(args.op.Ints("whole_dims")) : in.dims;
  const Dims in_begin = is_piece ? Dims(args.op.Ints("piece_input_begin")) : Dims::Filled(rank, 0);
  const Dims out_begin =
      is_piece ? Dims(args.op.Ints("piece_output_begin")) : Dims::Filled(rank, 0);
  const Dims strides = RowMajorStrides(in.dims);
  std::vector<PadAxis> axes;
  for (int d = 0; d < rank; ++d)
    axes.emplace_back(*PadModeFromName(args.op.String("mode")), whole[d], amounts.before[d],
                      amounts.after[d]);
  return DispatchWidth(in.dtype, [&]<typename T>() -> Status {
    MSRT_ASSIGN_OR_RETURN(const T fill, PadValue<T>(args));
    return CopyByAxis(
        args.parallel, in.As<const T>(), out.dims, out.As<T>(), fill, [&](int axis, int64_t i) {
          const int64_t source = axes[static_cast<size_t>(axis)].Source(out_begin[axis] + i);
          return source < 0 ? kNoSource : (source - in_begin[axis]) * strides[axis];
        });
  });
}

Status ReverseSequence(const KernelArgs& args) {
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  const bool batch_first = args.op.Int("batch_axis") == 0;
  const int64_t batches = in.dims[batch_first ? 0 : 1], times = in.dims[batch_first ? 1 : 0];
  const auto lengths = IntValues(args.inputs[1].dtype, args.inputs[1].data, batches);
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > times) {
      return InvalidArgument("sequence_lens[", i, "] = ", lengths[i], ", must be in [0, ", times,
                             "], the dim along the time axis");
    }
  }
  const size_t bytes = RowBytes(in, 2);
  if (bytes == 0) return OkStatus();
  const auto row = [&](int64_t batch, int64_t time) {
    return static_cast<size_t>(batch_first ? batch * times + time : time * batches + batch) * bytes;
  };
  return ParallelRanges(args.parallel, batches, 1, [&](int64_t begin, int64_t end) {
    for (int64_t batch = begin; batch < end; ++batch) {
      const int64_t length = lengths[static_cast<size_t>(batch)];
      for (int64_t time = 0; time < times; ++time) {
        const int64_t source = time < length ? length - 1 - time : time;
        std::memcpy(out.As<std::byte>() + row(batch, time), in.As<std::byte>() + row(batch, source),
                    bytes);
      }
    }
  });
}

constexpr KernelDef kMovementKernels[] = {
    {"", "Transpose", Transpose},
    {"", "Concat", Concat},
    {"", "Split", Split},
    {"", "Slice", Slice},
    {"", "Tile", Tile},
    {"", "Pad", Pad},
    {"", "ReverseSequence", ReverseSequence},
};

}  // namespace

std::span<const KernelDef> MovementKernels() { return kMovementKernels; }

}  // namespace msrt::reference
