// The accelerator as the functions of msrt_delegate_api: what it offers, compiles and runs.
#pragma once

#include "core/abi/msrt_plugin.h"

namespace accelerator {

// `device` is copied by whoever registers the table.
msrt_delegate_api DelegateApi(const msrt_device_api* device);

}  // namespace accelerator
