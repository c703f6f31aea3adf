// DeformConv: for each output position, first finds where every tap reads from (corners and
// weights, the same for all channels of an offset group), then sums over input channels and taps.
#include <cmath>
#include <vector>

#include "delegates/reference/dispatch.h"
#include "delegates/reference/kernel.h"
#include "delegates/reference/number.h"
#include "ops/window.h"

namespace msrt::reference {
namespace {

constexpr size_t kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;

struct Corner {
  int64_t offset;  // in a channel of X
  double weight;
};
// The corners that one tap reads: up to two along each axis, without those outside the image.
using Reading = std::vector<Corner>;

struct Shape {
  Windows windows;
  int64_t in_plane = 1, out_plane = 1, taps = 1;
  int64_t inputs, outputs, groups, offset_groups;
};

Result<Shape> ShapeOf(const KernelArgs& args) {
  const Dims &x = args.inputs[kX].dims, &w = args.inputs[kW].dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(args.op, x, std::span<const int64_t>(w).subspan(2)));
  Shape s{.windows = windows,
          .inputs = x[1],
          .outputs = w[0],
          .groups = args.op.Int("group"),
          .offset_groups = args.op.Int("offset_group")};
  for (const WindowAxis& a : windows.axis)
    s.in_plane *= a.in, s.out_plane *= a.out, s.taps *= a.kernel;
  return s;
}

// Splits `index` into one number for each spatial axis; the last runs fastest.
std::array<int64_t, kMaxSpace> Split(int64_t index, const std::array<int64_t, kMaxSpace>& extents) {
  std::array<int64_t, kMaxSpace> at;
  for (size_t i = kMaxSpace; i-- > 0;) {
    at[i] = index % extents[i];
    index /= extents[i];
  }
  return at;
}

// Returns the corners around a position, built one axis after the other.
Reading ReadingAt(const Windows& windows, const std::array<double, kMaxSpace>& position,
                  double scale) {
  Reading reading = {{0, scale}};
  for (int i = 0; i < windows.rank; ++i) {
    const int64_t extent = windows.axis[static_cast<size_t>(i)].in;
    const double x = position[static_cast<size_t>(i)];
    if (!(x > -1 && x < static_cast<double>(extent))) return {};
    const double floor = std::floor(x), part = x - floor;
    const auto low = static_cast<int64_t>(floor);
    Reading next;
    for (const Corner& c : reading) {
      if (low >= 0) next.push_back({c.offset * extent + low, c.weight * (1 - part)});
      if (low + 1 < extent) next.push_back({c.offset * extent + low + 1, c.weight * part});
    }
    reading = std::move(next);
  }
  return reading;
}

// Returns the readings of all taps of all offset groups at one output position of one image.
template <typename T>
std::vector<Reading> ReadingsAt(const KernelArgs& args, const Shape& s, int64_t image,
                                int64_t place) {
  const auto& axis = s.windows.axis;
  const auto out = Split(place, {axis[0].out, axis[1].out, axis[2].out});
  const int rank = s.windows.rank;
  std::vector<Reading> readings;
  for (int64_t t = 0; t < s.offset_groups * s.taps; ++t) {
    const auto tap = Split(t % s.taps, {axis[0].kernel, axis[1].kernel, axis[2].kernel});
    const int64_t at = image * s.offset_groups * s.taps + t;  // index of this tap in the batch
    std::array<double, kMaxSpace> position = {};
    for (int i = 0; i < rank; ++i) {
      const auto a = static_cast<size_t>(i);
      const T moved = args.inputs[kOffset].As<T>()[(at * rank + i) * s.out_plane + place];
      position[a] = static_cast<double>(axis[a].start(out[a]) + tap[a] * axis[a].dilation) +
                    static_cast<double>(moved);
    }
    const double mask =
        args.has_input(kMask)
            ? static_cast<double>(args.inputs[kMask].As<T>()[at * s.out_plane + place])
            : 1.0;
    readings.push_back(ReadingAt(s.windows, position, mask));
  }
  return readings;
}

template <typename T>
void ConvolveAt(const KernelArgs& args, const Shape& s, int64_t image, int64_t place) {
  const std::vector<Reading> readings = ReadingsAt<T>(args, s, image, place);
  const int64_t group_inputs = s.inputs / s.groups, group_outputs = s.outputs / s.groups;
  const T *x = args.inputs[kX].As<T>() + image * s.inputs * s.in_plane,
          *w = args.inputs[kW].As<T>();
  for (int64_t m = 0; m < s.outputs; ++m) {
    double sum = args.has_input(kBias) ? static_cast<double>(args.inputs[kBias].As<T>()[m]) : 0.0;
    for (int64_t i = 0; i < group_inputs; ++i) {
      const int64_t channel = m / group_outputs * group_inputs + i;
      const int64_t first = channel / (s.inputs / s.offset_groups) * s.taps;
      for (int64_t t = 0; t < s.taps; ++t) {
        double value = 0;
        for (const Corner& c : readings[static_cast<size_t>(first + t)]) {
          value += c.weight * static_cast<double>(x[channel * s.in_plane + c.offset]);
        }
        sum += value * static_cast<double>(w[(m * group_inputs + i) * s.taps + t]);
      }
    }
    args.outputs[0].As<T>()[(image * s.outputs + m) * s.out_plane + place] = FromWide<T>(sum);
  }
}

Status DeformConv(const KernelArgs& args) {
  MSRT_ASSIGN_OR_RETURN(const Shape s, ShapeOf(args));
  return DispatchFloat(args.inputs[kX].dtype, [&]<typename T>() -> Status {
    return ParallelRanges(args.parallel, args.inputs[kX].dims[0] * s.out_plane, 4,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i)
                              ConvolveAt<T>(args, s, i / s.out_plane, i % s.out_plane);
                          });
  });
}

constexpr KernelDef kDeformConvKernels[] = {{"", "DeformConv", DeformConv}};

}  // namespace

std::span<const KernelDef> DeformConvKernels() { return kDeformConvKernels; }

}  // namespace msrt::reference
