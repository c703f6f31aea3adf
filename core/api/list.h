// A list of the C API: the elements of a list value, which is an input or output of sessions.
// Elements do not change once they are in the list.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/api/handles.h"
#include "core/compile/compile.h"
#include "core/run/value.h"

namespace msrt {

struct ListObject {
  std::shared_ptr<const Environment> environment;  // destroyed last
  std::vector<RunValue> elements;  // each owns its memory and the environment of its allocator
  int depth = 1;                   // 2: a list of lists
  std::atomic<bool> busy{false};
};

// The current elements of a list, as a value for runs.
Result<RunValue> ListArgument(const msrt_list* list, std::string_view argument);
// Checks that `value` has the type. `name` names it in messages.
Status CheckListFits(const Type& type, const RunValue& value, const std::string& name);
// Returns a new handle for a list that a run returned.
msrt_list* PublishList(std::shared_ptr<const Environment> environment, const ListValue& list);

}  // namespace msrt
