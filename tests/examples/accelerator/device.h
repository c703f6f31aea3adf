// The accelerator's memory, streams, events and recordings as the functions of msrt_device_api.
#pragma once

#include "core/abi/msrt_plugin.h"
#include "tests/examples/accelerator/options.h"

namespace accelerator {

// `self` is a Handle. `name` is the caller's.
msrt_device_api DeviceApi(const Options& options, const char* name, size_t number);

}  // namespace accelerator
