// The iteration space of one node as data: its axes and, for each dim of each tensor, the axis that
// the dim follows and how. Made once per node (ops/resolve_space.h); the functions below answer
// every question about pieces from it, for all ops alike.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/region/space.h"

namespace msrt {

// A rule that no closed form covers (resampling, reflection, user-defined ops). The interval that
// it returns for several indices is the hull of those for each of them.
class IntervalMap {
 public:
  virtual ~IntervalMap() = default;
  // Returns the elements of the dim that a non-empty interval of the axis touches, within the dim.
  virtual Interval Touched(Interval axis) const = 0;
};

// How one dim of a tensor follows an axis. In all formulas i is an index of the axis, and elements
// outside [0, extent) are not touched.
struct DimMap {
  enum class Kind : uint8_t {
    kFixed,             // follows no axis: each piece touches `fixed`
    kAffine,            // element offset + step*i; the identity is 0 + 1*i
    kWindow,            // elements step*i + dilation*t + offset for t in [0, kernel)
    kTransposedWindow,  // elements x for which step*x + dilation*t + offset = i for a t
    kBlock,             // the `size` elements of block (i + offset) / divisor
    kFunction,          // `function`
  };
  Kind kind = Kind::kFixed;
  bool whole_if_empty = false;  // kBlock: an empty interval touches the whole dim
  int axis = -1;
  int64_t extent = 0;
  int64_t offset = 0, step = 1;
  int64_t dilation = 1, kernel = 1;
  int64_t divisor = 1, size = 1;
  Interval fixed;
  std::shared_ptr<const IntervalMap> function;

  static DimMap Whole(int64_t extent) { return Fixed({0, extent}); }
  static DimMap Fixed(Interval interval);
  static DimMap Same(int axis, int64_t extent) { return Affine(axis, 0, 1, extent); }
  static DimMap Affine(int axis, int64_t offset, int64_t step, int64_t extent);
  static DimMap Window(int axis, int64_t stride, int64_t dilation, int64_t kernel, int64_t pad,
                       int64_t extent);
  static DimMap TransposedWindow(int axis, int64_t stride, int64_t dilation, int64_t kernel,
                                 int64_t pad, int64_t extent);
  static DimMap Block(int axis, int64_t size, int64_t extent, int64_t divisor = 1,
                      int64_t offset = 0);
  static DimMap Function(int axis, int64_t extent, std::shared_ptr<const IntervalMap> function);

  // Returns the elements that an interval of the axis touches; [0, 0) if there are none.
  Interval Touched(Interval of_axis) const;
  // Returns the smallest interval of an axis of `axis_extent` that touches all of `elements`.
  // Requires a dim that follows an axis, of which no two indices touch the same element: pieces
  // write their outputs so.
  Interval Inverse(Interval elements, int64_t axis_extent) const;
  // Returns the longest interval of an axis of `axis_extent` that touches only `owned`. A border of
  // the dim that is owned includes the padding beyond it.
  Interval Interior(Interval owned, int64_t axis_extent) const;
};

struct TensorMap {
  bool present = false;
  // The piece does not have this input: it is a list whose values `localize` writes into
  // attributes.
  bool dropped = false;
  // Not -1: only pieces that begin at 0 of this reduce axis touch the tensor (the bias of a sum).
  // The others have it empty or, if it is optional, not at all.
  int first_of = -1;
  bool optional = false;
  std::vector<DimMap> dims;

  static TensorMap Whole(std::span<const int64_t> extents);
  // Dim d follows axis first_axis + d.
  static TensorMap Same(std::span<const int64_t> extents, int first_axis = 0);
  // Dims align at the right with the axes [0, axes); a dim of 1 is touched whole. Requires at most
  // `axes` dims.
  static TensorMap Broadcast(std::span<const int64_t> extents, int axes);
};

struct ResolvedSpace {
  IterationSpace axes;
  std::vector<TensorMap> inputs, outputs;
};

// Whether the node that computes the piece has the tensor.
bool IsPresent(const TensorMap& map, const Box& piece);
// Return the box of each tensor that a piece touches; rank 0 for those that are not present.
Box TouchedBox(const TensorMap& map, const Box& piece);
std::vector<Box> InputBoxes(const ResolvedSpace& space, const Box& piece);
std::vector<Box> OutputBoxes(const ResolvedSpace& space, const Box& piece);

// The inverse of OutputBoxes: returns the smallest box of the space that computes `box` of output
// `output`. Axes that are reduced or must not be cut are whole in it. An empty box needs nothing.
std::optional<Box> PieceFor(const ResolvedSpace& space, size_t output, const Box& box);
// The same for boxes of several outputs; nullopt where an output is not needed.
std::optional<Box> PieceFor(const ResolvedSpace& space,
                            std::span<const std::optional<Box>> outputs);
// Extends the piece so that its box of output 0 begins and ends at multiples of the granule (by
// dim), or at the end of the output.
void ExtendToGranule(const ResolvedSpace& space, std::span<const int64_t> granule, Box* piece);
// Returns the parts of the inputs that box `box` of output `output` needs.
std::vector<Box> RequiredInputs(const ResolvedSpace& space, size_t output, const Box& box);

// Returns the largest box of the space that can be computed, without partial results, from the part
// `owned` of each input: the interior of a halo exchange. OutputBoxes of it is the part of the
// outputs. Each dim counts by itself, also those of an input (of Concat) of which the box touches
// nothing. nullopt if there is none.
std::optional<Box> InteriorPiece(const ResolvedSpace& space, std::span<const Box> owned);

}  // namespace msrt
