// What a runtime lends to the rules that plugins bring (ops, passes, importers) beside a place for
// the text of an error: the application's memory and log. The team stays with those who compute.
#pragma once

#include "core/base/allocator.h"
#include "core/base/log.h"

namespace msrt {

// What it points to outlives all that is made with it: rules live in the environment that they were
// registered with.
struct CallbackServices {
  Allocator* allocator = DefaultAllocator();
  Log log = {};
};

}  // namespace msrt
