#include "delegates/cpu/chain_taps.h"

#include <numeric>

namespace msrt::cpu {
namespace {

// A class of one output.
TapClass ClassOf(const WindowAxis& axis, int64_t output) {
  const Interval taps = axis.TapsInside(output);
  TapClass c{.first = output, .count = 1, .in_step = 0};
  if (taps.size() <= 0) return c;
  c.tap = taps.begin, c.taps = taps.size();
  c.in_step = axis.stride, c.in_tap_step = axis.dilation;
  c.in = axis.start(output) + taps.begin * axis.dilation;
  return c;
}

// Tap t adds input (output + pad_begin - dilation * t) / stride, if that is an integer inside.
TapClass TransposedClassOf(const WindowAxis& axis, int64_t output) {
  const int64_t common = std::gcd(axis.stride, axis.dilation);
  TapClass c{.first = output,
             .step = axis.stride,
             .count = 1,
             .tap_step = axis.stride / common,
             .in_step = 0,
             .in_tap_step = -axis.dilation / common};
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t at = output + axis.pad_begin - axis.dilation * tap;
    if (at < 0 || at % axis.stride != 0 || at / axis.stride >= axis.in) continue;
    if (c.taps == 0) c.tap = tap, c.in = at / axis.stride, c.in_step = 1;
    ++c.taps;
  }
  return c;
}

bool Continues(const TapClass& c, const TapClass& next) {
  return next.first == c.first + c.count * c.step && next.tap == c.tap && next.taps == c.taps &&
         (c.taps == 0 || next.in == c.in + c.count * c.in_step);
}

}  // namespace

AxisTaps TapsOf(const WindowAxis& axis, bool transposed) {
  AxisTaps taps{
      .in = axis.in, .out = axis.out, .kernel = axis.kernel, .classes = {}, .class_of = {}};
  taps.class_of.resize(static_cast<size_t>(axis.out));
  const int64_t step = transposed ? axis.stride : 1;
  for (int64_t phase = 0; phase < step; ++phase) {
    for (int64_t output = phase; output < axis.out; output += step) {
      const TapClass next = transposed ? TransposedClassOf(axis, output) : ClassOf(axis, output);
      const bool continues = output != phase && Continues(taps.classes.back(), next);
      if (continues) ++taps.classes.back().count;
      else taps.classes.push_back(next);
      taps.class_of[static_cast<size_t>(output)] = static_cast<uint32_t>(taps.classes.size() - 1);
    }
  }
  return taps;
}

}  // namespace msrt::cpu
