// Sliding windows over one to three spatial axes, shared by convolutions and pools. Reads strides,
// dilations, pads, auto_pad and ceil_mode once and turns them into one resolved form that
// inference, iteration spaces and kernels use.
#pragma once

#include <array>
#include <span>

#include "core/base/checked_math.h"
#include "core/graph/op_view.h"
#include "core/region/resolved_space.h"

namespace msrt {

// Maximum of strides, dilations, kernels and the span of a dilated kernel: a product of two does
// not overflow.
inline constexpr int64_t kMaxWindow = (int64_t{1} << 31) - 1;
// The end padding of a piece in ceil mode can be a stride more than an attribute of the whole.
inline constexpr int64_t kMaxPad = 2 * kMaxWindow;
inline constexpr int kMaxSpace = 3;

inline constexpr std::string_view kAutoPads[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
inline constexpr AttrDef kAutoPadAttr{.name = "auto_pad",
                                      .kind = AttrKind::kString,
                                      .default_string = "NOTSET",
                                      .choices = kAutoPads};
inline constexpr AttrDef kKernelShapeAttr{.name = "kernel_shape",
                                          .kind = AttrKind::kInts,
                                          .min_int = 1,
                                          .max_int = kMaxWindow,
                                          .max_count = kMaxSpace};
inline constexpr AttrDef kRequiredKernelAttr{.name = "kernel_shape",
                                             .kind = AttrKind::kInts,
                                             .required = true,
                                             .min_int = 1,
                                             .max_int = kMaxWindow,
                                             .max_count = kMaxSpace};
inline constexpr AttrDef kCeilModeAttr{.name = "ceil_mode", .min_int = 0, .max_int = 1};
inline constexpr AttrDef kStridesAttr{.name = "strides",
                                      .kind = AttrKind::kInts,
                                      .min_int = 1,
                                      .max_int = kMaxWindow,
                                      .max_count = kMaxSpace};
inline constexpr AttrDef kDilationsAttr{.name = "dilations",
                                        .kind = AttrKind::kInts,
                                        .min_int = 1,
                                        .max_int = kMaxWindow,
                                        .max_count = kMaxSpace};
inline constexpr AttrDef kPadsAttr{.name = "pads",
                                   .kind = AttrKind::kInts,
                                   .min_int = 0,
                                   .max_int = kMaxPad,
                                   .max_count = 2 * kMaxSpace};

// One spatial axis. Output y reads inputs stride*y + dilation*t - pad_begin for t in [0, kernel); a
// transposed window is the reverse: input x adds to outputs stride*x + dilation*t - pad_begin,
// where pad_begin of a piece may be negative. in, out and kernel may be unknown during inference;
// pads are valid only if in and kernel are known.
struct WindowAxis {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_begin = 0, pad_end = 0;

  int64_t span() const { return dilation * (kernel - 1) + 1; }
  // Returns the begin of the window of output y, in input coordinates.
  int64_t start(int64_t y) const { return stride * y - pad_begin; }
  // Returns the taps of output y that read [begin, end) of the input axis.
  Interval Taps(int64_t y, int64_t begin, int64_t end) const {
    const int64_t first = start(y);
    return {first >= begin ? 0 : CeilDiv(begin - first, dilation),
            std::min(kernel, CeilDiv(end - first, dilation))};
  }
  Interval TapsInside(int64_t y) const { return Taps(y, 0, in); }
};

// Axes beyond rank have extent 1, so a kernel may always loop over three.
struct Windows {
  int rank = 0;
  std::array<WindowAxis, kMaxSpace> axis;
};

// Returns the windows of a convolution or pool over `input` (batch, channels, space...), whose rank
// is known and which may have unknown dims. `kernel` has one extent for each spatial axis.
// `ceil_mode` counts a last window that overhangs the padded input, unless it would begin in the
// end padding; it has no effect with auto_pad.
Result<Windows> WindowsOf(const OpView& op, const Dims& input, std::span<const int64_t> kernel,
                          bool ceil_mode = false);

// The same for a transposed convolution, with output_padding, output_shape and the local attributes
// of pieces.
Result<Windows> TransposedWindowsOf(const OpView& op, const Dims& input,
                                    std::span<const int64_t> kernel);
// Local attributes of a piece of a transposed convolution that pads cannot express: pad_begin
// (signed) and the output size.
inline constexpr AttrDef kPieceOffsetsAttr{.name = "piece_offsets",
                                           .kind = AttrKind::kInts,
                                           .min_int = -kMaxPad,
                                           .max_int = kMaxPad,
                                           .max_count = kMaxSpace,
                                           .local = true};
inline constexpr AttrDef kPieceOutputsAttr{.name = "piece_outputs",
                                           .kind = AttrKind::kInts,
                                           .min_int = 0,
                                           .max_int = int64_t{1} << 56,
                                           .max_count = kMaxSpace,
                                           .local = true};

// Requires batch, channels and one to three spatial axes.
Status CheckSpatialRank(const Dims& input);

// ---- pieces: `space` holds the interval of outputs of each spatial axis -------------------------

Interval NeedsOf(const WindowAxis& axis, Interval out);
Interval TransposedNeedsOf(const WindowAxis& axis, Interval out);
// The input dim that the window reads, as a map from axis `space_axis` of an iteration space.
DimMap MapOf(const WindowAxis& axis, int space_axis);
DimMap TransposedMapOf(const WindowAxis& axis, int space_axis);
// Sets pads to the number of elements that the windows of the piece read outside the input, and
// removes auto_pad.
void LocalizeWindows(const Windows& windows, std::span<const Interval> space, AttrList* attrs);
void LocalizeTransposedWindows(const Windows& windows, std::span<const Interval> space,
                               AttrList* attrs);

}  // namespace msrt
