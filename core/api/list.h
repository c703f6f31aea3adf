// A list of the C API: the elements of a list value, which sessions take and give. Elements never
// change once they are in it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/api/handles.h"
#include "core/compile/compile.h"
#include "core/run/value.h"

namespace msrt {

struct ListObject {
  std::shared_ptr<const Environment> environment;  // goes last
  std::vector<RunValue> elements;  // each owns its memory and the environment that this came from
  int depth = 1;                   // 2: a list of lists
  std::atomic<bool> busy{false};
};

// What a list holds now, as a value that runs can use.
Result<RunValue> ListArgument(const msrt_list* list, std::string_view argument);
// The value is one that `type` describes. `name` says in messages where it is.
Status CheckListFits(const Type& type, const RunValue& value, const std::string& name);
// A new handle for a list that a run gave.
msrt_list* PublishList(std::shared_ptr<const Environment> environment, const ListValue& list);

}  // namespace msrt
