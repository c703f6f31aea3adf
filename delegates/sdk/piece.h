// Pieces of a larger node: local attributes say where a piece is in the whole, and kernels that do
// not read them must refuse it.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "core/base/str_cat.h"
#include "core/graph/op_view.h"

namespace msrt::sdk {

// Returns why a kernel that reads only the local attributes `read` must refuse the node; empty if
// it has no others.
inline std::string PieceRefusal(const OpView& op, std::span<const std::string_view> read = {}) {
  for (const AttrDef& attr : op.attr_defs()) {
    if (attr.local && op.Has(attr.name) &&
        std::find(read.begin(), read.end(), attr.name) == read.end())
      return StrCat("a piece with attribute ", attr.name);
  }
  return {};
}

}  // namespace msrt::sdk
