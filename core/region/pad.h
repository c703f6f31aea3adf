// One axis of Pad: maps an output index to its source element. Negative pads crop first; outside
// the kept elements the mode decides.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/dims.h"
#include "core/region/box.h"

namespace msrt {

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

// ONNX's names; nullopt for any other.
inline std::optional<PadMode> PadModeFromName(std::string_view name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "edge") return PadMode::kEdge;
  if (name == "wrap") return PadMode::kWrap;
  return std::nullopt;
}

struct PadAxis {
  PadMode mode = PadMode::kConstant;
  int64_t first = 0;   // the first source element that is kept
  int64_t kept = 0;    // the number of kept elements
  int64_t before = 0;  // output index of the first kept element, 0 or more

  // Requires |before|, |after| and extent below 2^60.
  PadAxis(PadMode pad_mode, int64_t extent, int64_t pad_before, int64_t pad_after)
      : mode(pad_mode),
        first(std::max<int64_t>(-pad_before, 0)),
        kept(std::max<int64_t>(extent - first - std::max<int64_t>(-pad_after, 0), 0)),
        before(std::max<int64_t>(pad_before, 0)) {}

  // The source element at output index `i`, or -1 for the constant. Modes other than kConstant
  // require kept > 0.
  int64_t Source(int64_t i) const {
    const int64_t x = i - before;
    if (x >= 0 && x < kept) return first + x;
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kEdge:
        return first + (x < 0 ? 0 : kept - 1);
      case PadMode::kWrap:
        return first + Modulo(x, kept);
      case PadMode::kReflect:
        break;
    }
    if (kept == 1) return first;
    const int64_t period = 2 * (kept - 1), phase = Modulo(x, period);
    return first + std::min(phase, period - phase);
  }

  // The smallest interval of source elements that contains Source(i) for every i of `out`; [0, 0)
  // if it is empty.
  Interval Needs(Interval out) const {
    Interval needs;
    if (out.empty()) return needs;
    const Interval inside = Intersect(out, {before, before + kept});
    if (!inside.empty()) needs = {Source(inside.begin), Source(inside.end - 1) + 1};
    if (mode == PadMode::kConstant) return needs;
    if (mode == PadMode::kEdge) return Hull(needs, {Source(out.begin), Source(out.end - 1) + 1});
    // Reflections and repeats are monotonic between multiples of this length, so the ends of each
    // stretch suffice; four stretches contain every element.
    const int64_t stretch = mode == PadMode::kWrap ? kept : std::max<int64_t>(kept - 1, 1);
    if (out.size() >= 4 * stretch) return {first, first + kept};
    for (int64_t i = out.begin; i < out.end;) {
      const int64_t next = std::min(out.end, i + stretch - Modulo(i - before, stretch));
      const int64_t a = Source(i), b = Source(next - 1);
      needs = Hull(needs, {std::min(a, b), std::max(a, b) + 1});
      i = next;
    }
    return needs;
  }

 private:
  static int64_t Modulo(int64_t x, int64_t n) { return (x % n + n) % n; }
};

// ONNX lists pads as all befores, then all afters, for `axes` (all of them where the list is
// empty). Requires checked lists.
struct PadAmounts {
  Dims before, after;
};
inline PadAmounts SpreadPads(std::span<const int64_t> pads, std::span<const int64_t> axes,
                             int rank) {
  PadAmounts amounts{Dims::Filled(rank, 0), Dims::Filled(rank, 0)};
  const size_t count = pads.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
    amounts.before[at] = pads[i];
    amounts.after[at] = pads[count + i];
  }
  return amounts;
}

}  // namespace msrt
