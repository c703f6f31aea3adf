// Tensors in the order of memory: a layout becomes dims, after which most kernels need not know it.
#pragma once

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

// `dims` with ones in front up to `rank`.
Dims Extended(Dims dims, int rank);

// Whether a plain tensor that broadcasts to `rank` has the same order in memory as in `layout`: all
// of its extent is in channels, or none is.
bool IsSameInPlain(const Dims& dims, int rank, Layout layout);

}  // namespace msrt::cpu
