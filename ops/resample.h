// The geometry of Resize: which input elements contribute to an output element, and with what
// weights. Each axis is resampled separately. All coordinates are those of the whole tensors, so
// that a piece computes the same bits as the whole.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/op_view.h"
#include "core/region/box.h"

namespace msrt {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResizeCoordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
};
enum class ResizeNearest : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

// In the order of the enums.
inline constexpr std::string_view kResizeModes[] = {"nearest", "linear", "cubic"};
inline constexpr std::string_view kResizeCoordinates[] = {
    "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
    "align_corners", "asymmetric",           "tf_crop_and_resize"};
inline constexpr std::string_view kResizeNearest[] = {"round_prefer_floor", "round_prefer_ceil",
                                                      "floor", "ceil"};

// Lists that are attributes in the usual form and inputs in the dynamic one. nullopt: not known
// before the run. Empty: absent.
struct ResizeLists {
  std::optional<std::vector<double>> roi, scales;
  std::optional<std::vector<int64_t>> sizes;
};
inline constexpr size_t kResizeRoiInput = 1, kResizeScalesInput = 2, kResizeSizesInput = 3;
// Reads the lists from attributes and from inputs whose values are known before the run.
ResizeLists ResizeListsOf(const OpView& op);
// Returns the elements of a float tensor as doubles.
std::vector<double> FloatValues(DType dtype, const void* data, int64_t elements);

struct ResizeAxis {
  int64_t in = 1, out = 1;     // of the whole tensors; may be unknown
  double scale = 1;            // out / in before out was rounded
  bool scale_is_ratio = true;  // exactly out / in: coordinates are computed without rounding it
  double roi_begin = 0, roi_end = 1;
  Interval in_piece, out_piece;  // the part of them that this node has
};

struct Resample {
  int rank = 0;
  std::array<ResizeAxis, kMaxRank> axis;
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeNearest nearest = ResizeNearest::kRoundPreferFloor;
  bool antialias = false, exclude_outside = false;
  double cubic_a = -0.75;

  // Whether the elements of the axis are copied unchanged.
  bool Unchanged(const ResizeAxis& a) const {
    return a.scale == 1 && a.out == a.in &&
           (coordinates != ResizeCoordinates::kTfCropAndResize ||
            (a.roi_begin == 0 && a.roi_end == 1));
  }
};

// Resolves and checks attributes and lists for an input of known rank. Dims may be unknown.
Result<Resample> ResampleOf(const OpView& op, const Dims& input, const ResizeLists& lists);

// SourceOf returns the coordinate of output y on the input axis. IsExtrapolated returns whether it
// is outside the image in a mode that extrapolates there.
double SourceOf(const Resample& r, const ResizeAxis& a, int64_t y);
bool IsExtrapolated(const Resample& r, const ResizeAxis& a, double source);

// Returns the input elements around a source coordinate that have weights, before clamping to the
// axis. Their number is the same for each output.
Interval TapsOf(const Resample& r, const ResizeAxis& a, double source);
// Computes a weight for each tap; their sum is 1.
void WeightsOf(const Resample& r, const ResizeAxis& a, double source, Interval taps,
               std::span<double> weights);

// Returns the part of the input axis that outputs `out` need. Requires known dims.
Interval ResizeNeeds(const Resample& r, const ResizeAxis& a, Interval out);

// One axis of a node, or of a piece: `count` taps for each output, as indices into the input of the
// piece, and weights.
struct ResizeTable {
  size_t count = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;
  std::vector<bool> extrapolated;
};
Result<ResizeTable> TableOf(const Resample& r, const ResizeAxis& a);

}  // namespace msrt
