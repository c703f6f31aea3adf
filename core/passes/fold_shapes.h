// Folds shape arithmetic: follows Shape, Size and the integer arithmetic on their results as
// products of numbers and of dims that only the run knows. Values that turn out to be numbers
// become constants, lists of numbers become attributes; the shape of a Reshape is written with 0
// and -1 where dims are proven to be those of its input; an Expand to its own shape and a Slice of
// everything are removed. Types are inferred again, so that later passes see the new dims.
#pragma once

#include "core/passes/pass.h"

namespace msrt {

Status FoldShapes(const PassContext& context, Graph* graph);

}  // namespace msrt
