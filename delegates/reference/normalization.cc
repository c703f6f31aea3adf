// Normalizations. Statistics are taken in double in two passes (mean, then squared deviations) over
// the elements of one slice in ascending order; a result is rounded once.
#include "delegates/reference/activation.h"
#include "delegates/reference/broadcast.h"
#include "delegates/reference/dispatch.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace msrt::reference {
namespace {

// Returns the offset of every element of a tensor of `dims`, row-major.
std::vector<int64_t> Offsets(const Dims& dims, const Dims& strides) {
  std::vector<int64_t> offsets(static_cast<size_t>(dims.elements()));
  for (size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = OffsetOf(static_cast<int64_t>(i), dims, strides);
  return offsets;
}

// Returns the number of slices per task, so that a task has some thousands of elements.
int64_t GrainFor(int64_t slice) { return 1 + 4096 / std::max<int64_t>(slice, 1); }

struct Moments {
  double mean = 0, variance = 0;
};

// Returns the moments of at(0), ..., at(count - 1); NaN if count is 0.
template <typename At>
Moments MomentsOf(int64_t count, const At& at) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) sum += at(i);
  const double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) squares += (at(i) - mean) * (at(i) - mean);
  return {mean, squares / static_cast<double>(count)};
}

Status RunBatch(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const Dims& dims = args.inputs[0].dims;
    if (dims.elements() == 0) return OkStatus();
    const auto scale = Doubles(args.inputs[1]), bias = Doubles(args.inputs[2]);
    const auto mean = Doubles(args.inputs[3]), variance = Doubles(args.inputs[4]);
    const double epsilon = args.op.Float("epsilon");
    const Activation activation = args.op.domain() == "msrt" ? Activation(args.op) : Activation();
    const T* x = args.inputs[0].As<T>();
    T* y = args.outputs[0].As<T>();
    const int64_t channels = dims.rank() >= 2 ? dims[1] : 1,
                  plane = dims.rank() >= 2 ? dims.product(2, dims.rank()) : 1;
    return ParallelRanges(
        args.parallel, dims[0] * channels, GrainFor(plane), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const auto c = static_cast<size_t>(row % channels);
            const double deviation = std::sqrt(variance[c] + epsilon);
            for (int64_t i = row * plane; i < (row + 1) * plane; ++i) {
              y[i] = static_cast<T>(activation(
                  (static_cast<double>(x[i]) - mean[c]) / deviation * scale[c] + bias[c]));
            }
          }
        });
  });
}

// Slices are groups of channels; InstanceNormalization has one channel in each.
Status NormalizeGroups(const KernelArgs& args, int64_t groups) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const Dims& dims = args.inputs[0].dims;
    if (dims.elements() == 0) return OkStatus();
    const auto scale = Doubles(args.inputs[1]), bias = Doubles(args.inputs[2]);
    const double epsilon = args.op.Float("epsilon");
    const int64_t channels = dims[1] / groups, plane = dims.product(2, dims.rank()),
                  slice = channels * plane;
    return ParallelRanges(
        args.parallel, dims[0] * groups, GrainFor(slice), [&](int64_t begin, int64_t end) {
          for (int64_t group = begin; group < end; ++group) {
            const T* x = args.inputs[0].As<T>() + group * slice;
            T* y = args.outputs[0].As<T>() + group * slice;
            const Moments m =
                MomentsOf(slice, [&](int64_t i) { return static_cast<double>(x[i]); });
            const double deviation = std::sqrt(m.variance + epsilon);
            for (int64_t i = 0; i < slice; ++i) {
              const auto c = static_cast<size_t>(group % groups * channels + i / plane);
              y[i] = static_cast<T>((static_cast<double>(x[i]) - m.mean) / deviation * scale[c] +
                                    bias[c]);
            }
          }
        });
  });
}

Status RunInstance(const KernelArgs& args) { return NormalizeGroups(args, args.inputs[0].dims[1]); }
Status RunGroup(const KernelArgs& args) { return NormalizeGroups(args, args.op.Int("num_groups")); }

// X as rows: the dims before `axis` count the rows, the others are the dims of each row.
struct Rows {
  Dims outer, inner;
  int64_t count = 0, length = 0;

  Rows(const Dims& dims, int64_t given_axis) {
    const int axis = static_cast<int>(given_axis < 0 ? given_axis + dims.rank() : given_axis);
    for (int i = 0; i < dims.rank(); ++i) (i < axis ? outer : inner).push_back(dims[i]);
    count = outer.elements(), length = inner.elements();
  }
};

// A parameter that broadcasts to X, read row by row.
class RowParameter {
 public:
  RowParameter(const TensorView& tensor, const Dims& x, const Rows& rows)
      : values_(Doubles(tensor)), outer_(rows.outer) {
    const Dims strides = BroadcastStrides(tensor.dims, x);
    const auto split = std::span<const int64_t>(strides);
    outer_strides_ = Dims(split.first(outer_.size()));
    columns_ = Offsets(rows.inner, Dims(split.subspan(outer_.size())));
  }
  int64_t RowOffset(int64_t row) const { return OffsetOf(row, outer_, outer_strides_); }
  double At(int64_t row_offset, int64_t column) const {
    return values_[static_cast<size_t>(row_offset + columns_[static_cast<size_t>(column)])];
  }

 private:
  std::vector<double> values_;
  Dims outer_, outer_strides_;
  std::vector<int64_t> columns_;
};

void StoreStatistic(const KernelArgs& args, size_t output, int64_t row, double value) {
  if (!args.has_output(output)) return;
  const Status status = DispatchFloat(args.outputs[output].dtype, [&]<typename U>() -> Status {
    args.outputs[output].As<U>()[row] = static_cast<U>(value);
    return OkStatus();
  });
  MSRT_CHECK(status.ok());
}

Status RunLayer(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const Dims& dims = args.inputs[0].dims;
    const Rows rows(dims, args.op.Int("axis"));
    const bool has_statistics = args.has_output(1) || args.has_output(2);
    if (rows.count == 0 || (rows.length == 0 && !has_statistics)) return OkStatus();
    const double epsilon = args.op.Float("epsilon");
    const bool has_bias = args.has_input(2);
    const RowParameter scale(args.inputs[1], dims, rows),
        bias(args.inputs[has_bias ? 2 : 1], dims, rows);
    return ParallelRanges(
        args.parallel, rows.count, GrainFor(rows.length), [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const T* x = args.inputs[0].As<T>() + row * rows.length;
            T* y = args.outputs[0].As<T>() + row * rows.length;
            const Moments m =
                MomentsOf(rows.length, [&](int64_t i) { return static_cast<double>(x[i]); });
            const double inverse = 1 / std::sqrt(m.variance + epsilon);
            const int64_t scale_row = scale.RowOffset(row), bias_row = bias.RowOffset(row);
            for (int64_t i = 0; i < rows.length; ++i) {
              const double normalized = (static_cast<double>(x[i]) - m.mean) * inverse;
              y[i] = static_cast<T>(normalized * scale.At(scale_row, i) +
                                    (has_bias ? bias.At(bias_row, i) : 0.0));
            }
            StoreStatistic(args, 1, row, m.mean);
            StoreStatistic(args, 2, row, inverse);
          }
        });
  });
}

template <typename T, typename Y>
Status RunRmsOf(const KernelArgs& args) {
  const Dims& dims = args.inputs[0].dims;
  const Rows rows(dims, args.op.Int("axis"));
  if (rows.count == 0 || rows.length == 0) return OkStatus();
  const double epsilon = args.op.Float("epsilon");
  const RowParameter scale(args.inputs[1], dims, rows);
  return ParallelRanges(
      args.parallel, rows.count, GrainFor(rows.length), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* x = args.inputs[0].As<T>() + row * rows.length;
          Y* y = args.outputs[0].As<Y>() + row * rows.length;
          double squares = 0;
          for (int64_t i = 0; i < rows.length; ++i)
            squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
          const double root = std::sqrt(squares / static_cast<double>(rows.length) + epsilon);
          const int64_t scale_row = scale.RowOffset(row);
          for (int64_t i = 0; i < rows.length; ++i)
            y[i] = static_cast<Y>(static_cast<double>(x[i]) / root * scale.At(scale_row, i));
        }
      });
}

Status RunRms(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    return DispatchFloat(args.outputs[0].dtype,
                         [&]<typename Y>() -> Status { return RunRmsOf<T, Y>(args); });
  });
}

// A line whose norm is 0 stays 0.
Status RunLp(const KernelArgs& args) {
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    const Dims& dims = args.inputs[0].dims;
    if (dims.elements() == 0) return OkStatus();
    const int64_t given = args.op.Int("axis"), p = args.op.Int("p");
    const int axis = static_cast<int>(given < 0 ? given + dims.rank() : given);
    const int64_t count = dims[axis], inner = dims.product(axis + 1, dims.rank());
    return ParallelRanges(args.parallel, dims.product(0, axis) * inner, GrainFor(count),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t line = begin; line < end; ++line) {
                              const int64_t first = line / inner * count * inner + line % inner;
                              const T* x = args.inputs[0].As<T>() + first;
                              T* y = args.outputs[0].As<T>() + first;
                              double sum = 0;
                              for (int64_t i = 0; i < count; ++i) {
                                const auto v = static_cast<double>(x[i * inner]);
                                sum += p == 1 ? std::abs(v) : v * v;
                              }
                              const double norm = p == 1 ? sum : std::sqrt(sum);
                              for (int64_t i = 0; i < count; ++i)
                                y[i * inner] = static_cast<T>(
                                    norm == 0 ? 0.0 : static_cast<double>(x[i * inner]) / norm);
                            }
                          });
  });
}

// ONNX defines the op as a function of others, which adds this to the deviation.
constexpr double kMeanVarianceEpsilon = 1e-9;

Status RunMeanVariance(const KernelArgs& args) {
  const Dims& dims = args.inputs[0].dims;
  if (dims.elements() == 0) return OkStatus();
  constexpr int64_t kImageAxes[] = {0, 2, 3};
  const std::span<const int64_t> axes =
      args.op.Has("axes") ? args.op.Ints("axes") : std::span<const int64_t>(kImageAxes);
  std::array<bool, kMaxRank> normalized{};
  for (int64_t a : axes) normalized[static_cast<size_t>(a < 0 ? a + dims.rank() : a)] = true;
  if (axes.empty()) normalized.fill(true);
  const Dims strides = RowMajorStrides(dims);
  Dims outer, outer_strides, inner, inner_strides;
  for (int i = 0; i < dims.rank(); ++i) {
    const bool in = normalized[static_cast<size_t>(i)];
    (in ? inner : outer).push_back(dims[i]);
    (in ? inner_strides : outer_strides).push_back(strides[i]);
  }
  const std::vector<int64_t> offsets = Offsets(inner, inner_strides);
  const auto count = static_cast<int64_t>(offsets.size());
  return DispatchFloat(args.inputs[0].dtype, [&]<typename T>() -> Status {
    return ParallelRanges(
        args.parallel, outer.elements(), GrainFor(count), [&](int64_t begin, int64_t end) {
          for (int64_t slice = begin; slice < end; ++slice) {
            const int64_t first = OffsetOf(slice, outer, outer_strides);
            const T* x = args.inputs[0].As<T>() + first;
            T* y = args.outputs[0].As<T>() + first;
            const Moments m = MomentsOf(count, [&](int64_t i) {
              return static_cast<double>(x[offsets[static_cast<size_t>(i)]]);
            });
            const double deviation = std::sqrt(m.variance) + kMeanVarianceEpsilon;
            for (int64_t at : offsets)
              y[at] = static_cast<T>((static_cast<double>(x[at]) - m.mean) / deviation);
          }
        });
  });
}

constexpr KernelDef kNormalizationKernels[] = {
    {"", "BatchNormalization", RunBatch},
    {"msrt", "FusedBatchNormalization", RunBatch},
    {"", "InstanceNormalization", RunInstance},
    {"", "GroupNormalization", RunGroup},
    {"", "LayerNormalization", RunLayer},
    {"", "RMSNormalization", RunRms},
    {"", "LpNormalization", RunLp},
    {"", "MeanVarianceNormalization", RunMeanVariance},
};

}  // namespace

std::span<const KernelDef> NormalizationKernels() { return kNormalizationKernels; }

}  // namespace msrt::reference
