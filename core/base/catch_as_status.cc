#include "core/base/catch_as_status.h"

#include <exception>

namespace msrt {

Status StatusFromCurrentException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return MakeStatus(Code::kOutOfMemory, "the process has no memory left");
  } catch (const std::exception& e) {
    return DelegateError("threw an exception: ", e.what());
  } catch (...) {
    return DelegateError("threw an exception of an unknown type");
  }
}

}  // namespace msrt
