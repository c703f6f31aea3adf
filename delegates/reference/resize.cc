// Resize as a gather (nearest) or as weighted sums along one axis after the other, in double;
// DepthToSpace, SpaceToDepth.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "ops/resample.h"

namespace msrt::reference {
namespace {

constexpr int64_t kGrain = 1 << 12;  // elements per task

// Calls body(outer index, output row) for every row along the last axis; the outer index has one
// number for each other axis.
template <typename Body>
Status ForEachRow(ParallelFor& parallel, const Dims& dims, Body body) {
  const int last = dims.rank() - 1;
  const int64_t rows = dims.product(0, last);
  return ParallelRanges(parallel, rows,
                        std::max<int64_t>(kGrain / std::max<int64_t>(dims[last], 1), 1),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t row = begin; row < end; ++row) {
                            Dims at = dims;
                            int64_t rest = row;
                            for (int i = last - 1; i >= 0; --i) {
                              at[i] = rest % dims[i];
                              rest /= dims[i];
                            }
                            body(at, row);
                          }
                        });
}

template <typename T>
Status Nearest(const KernelArgs& args, std::span<const ResizeTable> tables, T extrapolation) {
  const Dims &x = args.inputs[0].dims, &y = args.outputs[0].dims;
  const Dims strides = RowMajorStrides(x);
  const T* in = args.inputs[0].As<T>();
  T* out = args.outputs[0].As<T>();
  const int last = y.rank() - 1;
  const ResizeTable& columns = tables[static_cast<size_t>(last)];
  return ForEachRow(args.parallel, y, [&](const Dims& at, int64_t row) {
    int64_t base = 0;
    bool outside = false;
    for (int i = 0; i < last; ++i) {
      const ResizeTable& t = tables[static_cast<size_t>(i)];
      base += t.index[static_cast<size_t>(at[i])] * strides[i];
      outside = outside || t.extrapolated[static_cast<size_t>(at[i])];
    }
    for (size_t c = 0; c < static_cast<size_t>(y[last]); ++c) {
      out[row * y[last] + static_cast<int64_t>(c)] =
          outside || columns.extrapolated[c] ? extrapolation : in[base + columns.index[c]];
    }
  });
}

// Resamples one axis of `in`, whose dims become those of the result.
Result<std::vector<double>> ResampleAxis(ParallelFor& parallel, const std::vector<double>& in,
                                         const ResizeTable& table, int axis, int64_t outputs,
                                         Dims* dims) {
  const int64_t inner = dims->product(axis + 1, dims->rank()), in_length = (*dims)[axis];
  (*dims)[axis] = outputs;
  std::vector<double> out(static_cast<size_t>(dims->elements()));
  const int64_t lines =
      dims->product(0, axis + 1);  // each holds `inner` elements of one output index
  MSRT_RETURN_IF_ERROR(
      ParallelRanges(parallel, lines, std::max<int64_t>(kGrain / std::max<int64_t>(inner, 1), 1),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t line = begin; line < end; ++line) {
                         const auto output = static_cast<size_t>(line % outputs) * table.count;
                         const double* source = in.data() + line / outputs * in_length * inner;
                         double* target = out.data() + line * inner;
                         for (int64_t i = 0; i < inner; ++i) {
                           double sum = 0;
                           for (size_t t = output; t < output + table.count; ++t) {
                             // Skips infinities without weight, whose product would be NaN.
                             if (table.weight[t] != 0)
                               sum += table.weight[t] * source[table.index[t] * inner + i];
                           }
                           target[i] = sum;
                         }
                       }
                     }));
  return out;
}

template <typename T>
T Interpolated(double value) {
  if constexpr (kIsFloat<T>) {
    return static_cast<T>(value);
  } else {
    if (std::isnan(value)) return 0;
    return static_cast<T>(std::clamp(std::nearbyint(value),
                                     double{std::numeric_limits<T>::lowest()},
                                     double{std::numeric_limits<T>::max()}));
  }
}

template <typename T>
Status Interpolate(const KernelArgs& args, const Resample& r, std::span<const ResizeTable> tables,
                   T extrapolation) {
  Dims dims = args.inputs[0].dims;
  const T* in = args.inputs[0].As<T>();
  std::vector<double> values(in, in + dims.elements());
  for (int i = 0; i < r.rank; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    if (r.Unchanged(a)) continue;
    MSRT_ASSIGN_OR_RETURN(values,
                          ResampleAxis(args.parallel, values, tables[static_cast<size_t>(i)], i,
                                       a.out_piece.size(), &dims));
  }
  T* out = args.outputs[0].As<T>();
  const int last = dims.rank() - 1;
  const ResizeTable& columns = tables[static_cast<size_t>(last)];
  return ForEachRow(args.parallel, dims, [&](const Dims& at, int64_t row) {
    bool outside = false;
    for (int i = 0; i < last; ++i)
      outside = outside || tables[static_cast<size_t>(i)].extrapolated[static_cast<size_t>(at[i])];
    for (int64_t c = 0; c < dims[last]; ++c) {
      const int64_t i = row * dims[last] + c;
      out[i] = outside || columns.extrapolated[static_cast<size_t>(c)]
                   ? extrapolation
                   : Interpolated<T>(values[static_cast<size_t>(i)]);
    }
  });
}

Result<Resample> Resolve(const KernelArgs& args) {
  const auto floats = [&](std::string_view attr, size_t input) {
    const auto given = args.op.Floats(attr);
    if (!args.has_input(input)) return std::vector<double>(given.begin(), given.end());
    const TensorView& t = args.inputs[input];
    return FloatValues(t.dtype, t.data, t.elements());
  };
  const ResizeLists lists{.roi = floats("roi", kResizeRoiInput),
                          .scales = floats("scales", kResizeScalesInput),
                          .sizes = args.IntsFrom("sizes", kResizeSizesInput)};
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(args.op, args.inputs[0].dims, lists));
  for (int i = 0; i < r.rank; ++i) {
    const int64_t out = r.axis[static_cast<size_t>(i)].out_piece.size();
    if (out != args.outputs[0].dims[i]) {
      return InvalidArgument("scales or sizes make axis ", i, " ", out,
                             " elements long, the output was bound with ", args.outputs[0].dims[i]);
    }
  }
  return r;
}

Status RunResize(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const Resample r, Resolve(args));
  if (args.outputs[0].elements() == 0) return OkStatus();
  std::vector<ResizeTable> tables;
  for (int i = 0; i < r.rank; ++i) {
    MSRT_ASSIGN_OR_RETURN(ResizeTable table, TableOf(r, r.axis[static_cast<size_t>(i)]));
    tables.push_back(std::move(table));
  }
  const double extrapolation = args.op.Float("extrapolation_value");
  return Dispatch(args.inputs[0].dtype, [&]<typename T>() -> Status {
    if constexpr (std::is_same_v<T, bool>) {
      return Nearest<T>(args, tables, extrapolation != 0);
    } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>) {
      return Nearest<T>(
          args, tables,
          static_cast<T>(std::clamp(extrapolation, std::is_signed_v<T> ? -0x1p62 : 0.0, 0x1p62)));
    } else {
      const T value = Interpolated<T>(extrapolation);
      return r.mode == ResizeMode::kNearest ? Nearest<T>(args, tables, value)
                                            : Interpolate<T>(args, r, tables, value);
    }
  });
}

// ---- DepthToSpace, SpaceToDepth -----------------------------------------------------------------

// Calls copy(deep, spacious) with the offsets of every element in the deep tensor and in the
// spacious one, which is [batch, channels, height, width].
template <typename Copy>
Status PairBlocks(ParallelFor& parallel, const Dims& spacious, int64_t block, bool channels_first,
                  Copy copy) {
  const int64_t height = spacious[2], width = spacious[3], channels = spacious[1];
  const int64_t rows = height / block, columns = width / block;
  return ParallelRanges(
      parallel, spacious[0] * channels * height,
      std::max<int64_t>(kGrain / std::max<int64_t>(width, 1), 1), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t n = line / (channels * height), c = line / height % channels,
                        h = line % height;
          for (int64_t w = 0; w < width; ++w) {
            const int64_t in_block = h % block * block + w % block;
            const int64_t deep_channel =
                channels_first ? c * block * block + in_block : in_block * channels + c;
            copy(((n * channels * block * block + deep_channel) * rows + h / block) * columns +
                     w / block,
                 line * width + w);
          }
        }
      });
}

Status RunDepthToSpace(const KernelArgs& args) {
  return DispatchWidth(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* in = args.inputs[0].As<T>();
    T* out = args.outputs[0].As<T>();
    return PairBlocks(args.parallel, args.outputs[0].dims, args.op.Int("blocksize"),
                      args.op.String("mode") == "CRD",
                      [&](int64_t deep, int64_t spacious) { out[spacious] = in[deep]; });
  });
}

Status RunSpaceToDepth(const KernelArgs& args) {
  return DispatchWidth(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const T* in = args.inputs[0].As<T>();
    T* out = args.outputs[0].As<T>();
    return PairBlocks(args.parallel, args.inputs[0].dims, args.op.Int("blocksize"), false,
                      [&](int64_t deep, int64_t spacious) { out[deep] = in[spacious]; });
  });
}

constexpr KernelDef kResizeKernels[] = {{"", "Resize", RunResize},
                                        {"", "DepthToSpace", RunDepthToSpace},
                                        {"", "SpaceToDepth", RunSpaceToDepth}};

}  // namespace

std::span<const KernelDef> ResizeKernels() { return kResizeKernels; }

}  // namespace msrt::reference
