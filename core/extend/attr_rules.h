// The attributes of a user-defined op: checked copies of msrt_attr_rule as AttrDef.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/abi/msrt_plugin.h"
#include "core/graph/attribute.h"

namespace msrt {

class AttrRules {
 public:
  static Result<AttrRules> Make(const msrt_attr_rule* rules, size_t count);
  std::span<const AttrDef> defs() const { return defs_; }

 private:
  // Each on the heap, so that views of short strings survive a move.
  std::vector<std::unique_ptr<const std::string>> texts_;
  std::vector<AttrDef> defs_;
};

}  // namespace msrt
