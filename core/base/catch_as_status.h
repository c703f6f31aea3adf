// Calls into code that must not throw but was written by others: what it throws all the same
// becomes the error that it should have returned.
#pragma once

#include "core/base/status.h"

namespace msrt {

// Of the exception in flight: kOutOfMemory for std::bad_alloc, else kDelegate with what it says.
// Only inside of a catch.
Status ThrownStatus();

template <typename Call>
Status CatchAsStatus(Call&& call) {
  try {
    call();
    return OkStatus();
  } catch (...) {
    return ThrownStatus();
  }
}

}  // namespace msrt
