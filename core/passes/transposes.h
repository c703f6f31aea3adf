// Transposes and the views around them, as EliminateMoves simplifies them: each function looks at
// one node and rewrites it if that removes or shortens a move of data.
#pragma once

#include <optional>
#include <vector>

#include "core/passes/rewrite.h"

namespace msrt {

using Perm = std::vector<int>;

// The order of a Transpose; empty where the rank is not known.
Perm PermOf(const Rewriter& r, const Node& node);
AttrList PermAttr(const Perm& perm);

bool IsView(const Node& node);
// The attributes of a Reshape between two types of equally many elements, as far as they can be
// written down: dims that the run decides are copied from the same place, and one more may be
// inferred.
std::optional<AttrList> ReshapeAttrs(const Type& in, const Type& out);

// Node `n` is a Transpose.
bool SimplifyTranspose(Rewriter* r, size_t n);
// Node `n` is a view.
bool SimplifyViewOfTranspose(Rewriter* r, size_t n);
// Node `n` is a Gather.
bool SliceInsteadOfGather(Rewriter* r, size_t n);

}  // namespace msrt
