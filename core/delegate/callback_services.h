// Host services for the callbacks of ops, passes and importers: the application's memory and log.
// The thread team is for delegates and kernels only.
#pragma once

#include "core/base/allocator.h"
#include "core/base/log.h"

namespace msrt {

// The allocator and log outlive all callbacks: callbacks belong to the environment that they were
// registered with.
struct CallbackServices {
  Allocator* allocator = DefaultAllocator();
  Log log = {};
};

}  // namespace msrt
