// Images read at positions between pixels. Along each axis a position becomes a few pixels with
// weights; a value is the sum over all combinations of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/elements.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"

namespace msrt::reference {
namespace {

// ---- GridSample ---------------------------------------------------------------------------------

enum class Padding { kZeros, kBorder, kReflection };

Padding PaddingOf(const OpView& op) {
  const std::string_view name = op.String("padding_mode");
  return name == "zeros"    ? Padding::kZeros
         : name == "border" ? Padding::kBorder
                            : Padding::kReflection;
}

// How one axis of an image is read.
struct AxisReader {
  int64_t extent, stride;  // in pixels; elements from one pixel to the next
  bool align_corners;
  Padding padding;
};

// Pixels (as offsets) and their weights, without pixels outside that count as zero.
struct Taps {
  std::array<int64_t, 4> offsets;
  std::array<double, 4> weights;
  int count = 0;
};

// Reflects x at the borders until it is between them.
double Reflect(double x, double low, double high) {
  const double length = high - low;
  if (!(length > 0)) return low;
  const double turns = std::fmod(std::abs(x - low), 2 * length);
  return low + (turns > length ? 2 * length - turns : turns);
}

void AddTap(const AxisReader& axis, double pixel, double weight, Taps* taps) {
  const auto last = static_cast<double>(axis.extent - 1);
  if (axis.padding == Padding::kReflection) {
    pixel = axis.align_corners ? Reflect(pixel, 0, last) : Reflect(pixel, -0.5, last + 0.5);
  }
  if (axis.padding != Padding::kZeros) pixel = std::clamp(pixel, 0.0, last);
  if (!(pixel >= 0 && pixel <= last)) return;
  const auto at = static_cast<size_t>(taps->count++);
  taps->offsets[at] = static_cast<int64_t>(pixel) * axis.stride;
  taps->weights[at] = weight;
}

// Cubic convolution with a = -0.75 at a distance of up to 2.
double CubicWeight(double distance) {
  constexpr double a = -0.75;
  const double d = std::abs(distance);
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// Returns the taps at a position; none if it is NaN.
Taps TapsAt(const AxisReader& axis, double position, std::string_view mode) {
  Taps taps;
  if (!std::isfinite(position) || axis.extent == 0) return taps;
  const auto extent = static_cast<double>(axis.extent);
  const double x =
      axis.align_corners ? (position + 1) / 2 * (extent - 1) : ((position + 1) * extent - 1) / 2;
  if (mode == "nearest") {
    AddTap(axis, std::nearbyint(x), 1, &taps);
    return taps;
  }
  const double floor = std::floor(x), part = x - floor;
  if (mode == "linear") {
    AddTap(axis, floor, 1 - part, &taps);
    AddTap(axis, floor + 1, part, &taps);
    return taps;
  }
  for (int i = -1; i <= 2; ++i) AddTap(axis, floor + i, CubicWeight(part - i), &taps);
  return taps;
}

template <typename T>
double SumOver(const T* image, std::span<const Taps> axes) {
  if (axes.empty()) return static_cast<double>(*image);
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(axes[0].count); ++i) {
    sum += axes[0].weights[i] * SumOver(image + axes[0].offsets[i], axes.subspan(1));
  }
  return sum;
}

Status GridSample(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &grid = args.inputs[1], &out = args.outputs[0];
  const int space = x.dims.rank() - 2;
  const std::string_view mode = args.op.String("mode");
  const Dims strides = RowMajorStrides(x.dims);
  std::vector<AxisReader> axes;
  for (int i = 0; i < space; ++i) {
    axes.push_back(
        {x.dims[2 + i], strides[2 + i], args.op.Int("align_corners") != 0, PaddingOf(args.op)});
  }
  const int64_t channels = x.dims[1], pixels = x.dims.product(2, x.dims.rank()),
                positions = out.dims.product(2, out.dims.rank());
  return DispatchNumber(x.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(
        args.parallel, out.dims[0] * positions, 16, [&](int64_t begin, int64_t end) {
          std::vector<Taps> taps(axes.size());
          std::vector<double> position(axes.size());
          for (int64_t i = begin; i < end; ++i) {
            LoadElements(grid.dtype, grid.data, i * space, 1, space, position.data());
            // Positions name the last axis first.
            for (size_t a = 0; a < axes.size(); ++a)
              taps[a] = TapsAt(axes[a], position[axes.size() - 1 - a], mode);
            const int64_t batch = i / positions;
            for (int64_t c = 0; c < channels; ++c) {
              const double value =
                  SumOver(x.As<T>() + (batch * channels + c) * pixels, std::span<const Taps>(taps));
              out.As<T>()[(batch * channels + c) * positions + i % positions] =
                  FromDouble<T>(value);
            }
          }
        });
  });
}

// ---- AffineGrid ---------------------------------------------------------------------------------

// Returns the position of pixel i of `extent` between -1 and 1.
double NormalizedPosition(int64_t i, int64_t extent, bool align_corners) {
  if (!align_corners) return (2 * static_cast<double>(i) + 1) / static_cast<double>(extent) - 1;
  return extent == 1 ? 0 : 2 * static_cast<double>(i) / static_cast<double>(extent - 1) - 1;
}

Status AffineGrid(const KernelArgs& args) {
  const TensorView &theta = args.inputs[0], &out = args.outputs[0];
  const int space = out.dims.rank() - 2;
  const bool align_corners = args.op.Int("align_corners") != 0;
  const auto begin_of = args.op.Ints("piece_begin"), whole = args.op.Ints("whole_size");
  const int64_t positions = out.dims.product(1, space + 1);
  return DispatchFloat(out.dtype, [&]<typename T>() -> Status {
    return ParallelRanges(
        args.parallel, out.dims[0] * positions, 64, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            std::array<double, 4> position;  // last axis first, then 1
            int64_t rest = i % positions;
            for (int a = space - 1; a >= 0; --a) {
              const auto axis = static_cast<size_t>(a);
              const int64_t extent = whole.empty() ? out.dims[1 + a] : whole[axis];
              const int64_t index =
                  rest % out.dims[1 + a] + (begin_of.empty() ? 0 : begin_of[axis]);
              position[static_cast<size_t>(space - 1 - a)] =
                  NormalizedPosition(index, extent, align_corners);
              rest /= out.dims[1 + a];
            }
            position[static_cast<size_t>(space)] = 1;
            const T* matrix = theta.As<T>() + i / positions * space * (space + 1);
            for (int row = 0; row < space; ++row) {
              double sum = 0;
              for (int column = 0; column <= space; ++column) {
                sum += static_cast<double>(matrix[row * (space + 1) + column]) *
                       position[static_cast<size_t>(column)];
              }
              out.As<T>()[i * space + row] = FromWide<T>(sum);
            }
          }
        });
  });
}

// ---- RoiAlign -----------------------------------------------------------------------------------

// A sample along one axis: two pixels and the weight of the higher one; outside the image the
// weight is -1.
struct Sample {
  int64_t low, high;
  double part;
};

Sample SampleAt(double x, int64_t extent) {
  if (!(x >= -1 && x <= static_cast<double>(extent))) return {0, 0, -1};
  x = std::max(x, 0.0);
  const auto low = static_cast<int64_t>(x);
  if (low >= extent - 1) return {extent - 1, extent - 1, 0};
  return {low, low + 1, x - static_cast<double>(low)};
}

// One axis of one region: bins with `per_bin` samples each.
struct RegionAxis {
  size_t per_bin = 0;
  std::vector<Sample> samples;

  std::span<const Sample> Bin(int64_t bin) const {
    return std::span(samples).subspan(static_cast<size_t>(bin) * per_bin, per_bin);
  }
};

constexpr double kMaxSamples = 1 << 12;

Result<RegionAxis> AxisOfRegion(const OpView& op, double first, double last, int64_t bins,
                                int64_t extent) {
  const bool half_pixel = op.String("coordinate_transformation_mode") == "half_pixel";
  const double scale = op.Float("spatial_scale"), begin = first * scale - (half_pixel ? 0.5 : 0);
  const double length = half_pixel ? (last - first) * scale : std::max((last - first) * scale, 1.0);
  const double bin = length / static_cast<double>(bins);
  const double per_bin = op.Int("sampling_ratio") > 0
                             ? static_cast<double>(op.Int("sampling_ratio"))
                             : std::max(std::ceil(bin), 0.0);
  if (!std::isfinite(begin) || !std::isfinite(bin) || per_bin > kMaxSamples) {
    return InvalidArgument("a region from ", first, " to ", last, " would take more than ",
                           kMaxSamples, " samples for a bin");
  }
  RegionAxis axis;
  axis.per_bin = static_cast<size_t>(per_bin);
  for (int64_t b = 0; b < bins; ++b) {
    for (size_t i = 0; i < axis.per_bin; ++i) {
      const double x =
          begin + static_cast<double>(b) * bin + (static_cast<double>(i) + 0.5) * bin / per_bin;
      axis.samples.push_back(SampleAt(x, extent));
    }
  }
  return axis;
}

// Returns the average of the samples of a bin, or the greatest of their weighted corners, which is
// what ONNX means by max.
template <typename T>
double PoolBin(const T* image, int64_t width, std::span<const Sample> rows,
               std::span<const Sample> columns, bool average) {
  double sum = 0, greatest = -std::numeric_limits<double>::infinity();
  for (const Sample& y : rows) {
    for (const Sample& x : columns) {
      std::array<double, 4> corners = {};
      if (y.part >= 0 && x.part >= 0) {
        const auto pixel = [&](int64_t row, int64_t column) {
          return static_cast<double>(image[row * width + column]);
        };
        corners = {(1 - y.part) * (1 - x.part) * pixel(y.low, x.low),
                   (1 - y.part) * x.part * pixel(y.low, x.high),
                   y.part * (1 - x.part) * pixel(y.high, x.low),
                   y.part * x.part * pixel(y.high, x.high)};
      }
      for (double corner : corners) {
        sum += corner;
        greatest = GreaterOf(greatest, corner);
      }
    }
  }
  const size_t count = rows.size() * columns.size();
  if (count == 0) return 0;
  return average ? sum / static_cast<double>(count) : greatest;
}

Status RoiAlign(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &rois = args.inputs[1], &out = args.outputs[0];
  const std::vector<int64_t> batches =
      IntValues(args.inputs[2].dtype, args.inputs[2].data, args.inputs[2].elements());
  const int64_t channels = out.dims[1], height = out.dims[2], width = out.dims[3];
  const bool average = args.op.String("mode") == "avg";
  if (out.elements() == 0) return OkStatus();  // the number of bins may overflow
  for (int64_t r = 0; r < out.dims[0]; ++r) {
    const int64_t batch = batches[static_cast<size_t>(r)];
    if (batch < 0 || batch >= x.dims[0])
      return InvalidArgument("batch_indices[", r, "] = ", batch, ", must be in [0, ", x.dims[0] - 1,
                             "]");
    if (x.dims[2] == 0 || x.dims[3] == 0)
      return InvalidArgument("a region cannot be taken from an empty image ", x.dims);
    double box[4];
    LoadElements(rois.dtype, rois.data, r * 4, 1, 4, box);
    MSRT_ASSIGN_OR_RETURN(const RegionAxis rows,
                          AxisOfRegion(args.op, box[1], box[3], height, x.dims[2]));
    MSRT_ASSIGN_OR_RETURN(const RegionAxis columns,
                          AxisOfRegion(args.op, box[0], box[2], width, x.dims[3]));
    MSRT_RETURN_IF_ERROR(DispatchFloat(x.dtype, [&]<typename T>() -> Status {
      return ParallelRanges(args.parallel, channels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const T* image = x.As<T>() + (batch * channels + c) * x.dims[2] * x.dims[3];
          T* to = out.As<T>() + (r * channels + c) * height * width;
          for (int64_t i = 0; i < height * width; ++i) {
            to[i] = FromWide<T>(
                PoolBin(image, x.dims[3], rows.Bin(i / width), columns.Bin(i % width), average));
          }
        }
      });
    }));
  }
  return OkStatus();
}

constexpr KernelDef kSamplingKernels[] = {
    {"", "GridSample", GridSample}, {"", "AffineGrid", AffineGrid}, {"", "RoiAlign", RoiAlign}};

}  // namespace

std::span<const KernelDef> SamplingKernels() { return kSamplingKernels; }

}  // namespace msrt::reference
