// The accelerator's memory, streams and events as the functions of msrt_device_api.
#pragma once

#include "core/abi/msrt_plugin.h"
#include "tests/examples/accelerator/options.h"

namespace accelerator {

msrt_device_api DeviceApi(const Options& options);

}  // namespace accelerator
