// Computes with shapes before the run does: follows Shape, Size and the integer arithmetic on their
// results as products of numbers and of dims that only the run knows. What turns out to be a number
// becomes a constant, lists of numbers become attributes; the shape of a Reshape is written with 0
// and -1 where dims are proven to be those of its input; an Expand to its own shape and a Slice of
// all go. Types are inferred again, so that the passes behind see what has become known.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldShapes(const PassContext& context, Graph* graph);

}  // namespace msrt
