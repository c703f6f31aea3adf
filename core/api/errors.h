// From Status and exceptions to msrt_status: every function of the C API runs its body in Guarded,
// so nothing is thrown across the C boundary, and each thread can ask why its last call failed.
#pragma once

#include <exception>
#include <new>

#include "core/abi/msrt.h"
#include "core/base/status.h"

namespace msrt {

// Remembers the error for the calling thread and returns its number. `function` has static storage.
msrt_status RecordError(const char* function, Status status) noexcept;
// The same without allocating memory.
msrt_status RecordOutOfMemory(const char* function) noexcept;
msrt_status RecordException(const char* function, const char* what) noexcept;
// Creates the calling thread's record, which allocates a little memory the first time, before the
// call can use up the memory that is left.
void PrepareErrorRecord() noexcept;

template <typename Body>
msrt_status Guarded(const char* function, const Body& body) noexcept {
  PrepareErrorRecord();
  try {
    Status status = body();
    return status.ok() ? MSRT_OK : RecordError(function, std::move(status));
  } catch (const std::bad_alloc&) {
    return RecordOutOfMemory(function);
  } catch (const std::exception& e) {
    return RecordException(function, e.what());
  } catch (...) {
    return RecordException(function, "an unknown exception");
  }
}

}  // namespace msrt
