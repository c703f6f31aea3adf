// Transposes and the views around them, as EliminateMoves simplifies them: each function looks at
// one node and rewrites it if that removes or shortens a move of data.
#pragma once

#include <optional>
#include <vector>

#include "core/passes/rewrite.h"

namespace msrt {

using Perm = std::vector<int>;

// Returns the permutation of a Transpose; empty if the rank is not known.
Perm PermOf(const Rewriter& r, const Node& node);
AttrList PermAttr(const Perm& perm);

bool IsView(const Node& node);
// Returns the attributes of a Reshape between two types with the same number of elements, if they
// can be expressed: open dims are copied from the same position, and one more may be inferred.
std::optional<AttrList> ReshapeAttrs(const Type& in, const Type& out);

// Requires that node `n` is a Transpose.
bool SimplifyTranspose(Rewriter* r, size_t n);
// Requires that node `n` is a view.
bool SimplifyViewOfTranspose(Rewriter* r, size_t n);
// Requires that node `n` is a Gather.
bool SliceInsteadOfGather(Rewriter* r, size_t n);

}  // namespace msrt
