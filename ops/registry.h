// The table of every op this build knows, and look-up in it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ops/op_def.h"

namespace msrt {

// Returns null if the op is unknown. O(1).
const OpDef* FindOp(std::string_view domain, std::string_view name);

// User-defined ops. Belongs to an environment, and is immutable once that is shared.
class OpSet {
 public:
  // Fails if the op is in the table or in this set.
  Status Add(std::shared_ptr<const OpDef> def);
  const OpDef* Find(std::string_view domain, std::string_view name) const;
  const std::map<std::string, std::shared_ptr<const OpDef>>& ops() const { return ops_; }

 private:
  std::map<std::string, std::shared_ptr<const OpDef>> ops_;  // by "domain.name"
};
// Searches the table, then `ops`, which may be null.
const OpDef* FindOp(std::string_view domain, std::string_view name, const OpSet* ops);

// Calls `visit` for each entry of the table, family by family.
void ForEachOp(const std::function<void(const OpDef&)>& visit);

}  // namespace msrt
