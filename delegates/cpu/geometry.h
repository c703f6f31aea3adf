// Tensors in the order of memory: a layout becomes dims, after which most kernels need not know it.
#pragma once

#include <vector>

#include "core/graph/op_view.h"
#include "core/graph/tensor.h"

namespace msrt::cpu {

// The layouts that candidates offer: of those with blocks, the one whose blocks are as wide as the
// vectors of this processor, which is also the one that oneDNN's candidates have.
std::span<const Layout> OfferedLayouts();

// Whether a tensor of this declared type may be in the layout for every shape that it can have,
// with full blocks.
bool Admits(const Type& type, Layout layout);

// Dims in the order of memory. Blocks of channels are a last dim; where channels are 1, they
// broadcast: 1 in both places.
Dims InMemory(const Dims& dims, Layout layout);

// Elements between neighbours along each of those dims of a tensor that may have strides.
Dims StepsInMemory(const TensorView& tensor);

// Lines along which all of several tensors of the same dims in memory are contiguous, or broadcast:
// dims that follow one another in all of them are merged.
struct Lines {
  Dims dims;                // outermost first, without the line
  std::vector<Dims> steps;  // by tensor: along `dims`
  int64_t columns = 1;      // of a line
  std::vector<int64_t> column_steps;  // by tensor: 1, or 0 if it broadcasts along the line

  // `steps` has one entry for each tensor: the step along each of `dims`, 0 where it broadcasts.
  Lines(const Dims& dims, std::span<const Dims> steps);
  int64_t count() const { return dims.elements(); }
  int64_t Offset(size_t tensor, int64_t line) const;
};

// `dims` with ones in front up to `rank`.
Dims Extended(Dims dims, int rank);

// Whether a plain tensor that broadcasts to `rank` has the same order in memory as in `layout`: all
// of its extent is in channels, or none is.
bool IsSameInPlain(const Dims& dims, int rank, Layout layout);

}  // namespace msrt::cpu
