// Calls foreign code that must not throw. An exception that it throws nevertheless becomes the
// error that it should have returned.
#pragma once

#include "core/base/status.h"

namespace msrt {

// Converts the exception in flight: std::bad_alloc to kOutOfMemory, any other to kDelegate with its
// message. Must be called inside a catch block.
Status StatusFromCurrentException();

template <typename Call>
Status CatchAsStatus(Call&& call) {
  try {
    call();
    return OkStatus();
  } catch (...) {
    return StatusFromCurrentException();
  }
}

}  // namespace msrt
