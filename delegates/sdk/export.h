// Exports a delegate written in C++ as the table of functions that the host calls.
#pragma once

#include <memory>

#include "core/abi/msrt_plugin.h"
#include "delegates/sdk/delegate.h"

namespace msrt::sdk {

// Register both together. `self` owns the delegate; api.destroy(self) destroys it.
struct ExportedDelegate {
  msrt_delegate_api api;
  void* self;
};
ExportedDelegate Export(std::unique_ptr<const Delegate> delegate);

}  // namespace msrt::sdk
