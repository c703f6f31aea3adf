// Pieces of a larger node: what a delegate refuses that knows nothing of the whole.
#pragma once

#include <string>

#include "core/base/str_cat.h"
#include "core/graph/op_view.h"

namespace msrt::sdk {

// Why a node is beyond kernels without knowledge of the whole: it says with local attributes where
// it stands in it. Empty: it does not.
inline std::string PieceRefusal(const OpView& op) {
  for (const AttrDef& attr : op.attr_defs()) {
    if (attr.local && op.Has(attr.name)) return StrCat("a piece with attribute ", attr.name);
  }
  return {};
}

}  // namespace msrt::sdk
