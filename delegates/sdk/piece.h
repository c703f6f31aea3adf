// Pieces of a larger node, which most kernels must refuse: a piece's attributes say where it is in
// the whole, and those kernels do not read them.
#pragma once

#include <string>

#include "core/base/str_cat.h"
#include "core/graph/op_view.h"

namespace msrt::sdk {

// Returns why kernels that ignore local attributes must refuse the node; empty if it has none set.
inline std::string PieceRefusal(const OpView& op) {
  for (const AttrDef& attr : op.attr_defs()) {
    if (attr.local && op.Has(attr.name)) return StrCat("a piece with attribute ", attr.name);
  }
  return {};
}

}  // namespace msrt::sdk
