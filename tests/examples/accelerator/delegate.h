// The accelerator as the functions of msrt_delegate_api: query, compile, bind and run.
#pragma once

#include "core/abi/msrt_plugin.h"

namespace accelerator {

// The caller that registers the table copies `device`.
msrt_delegate_api DelegateApi(const msrt_device_api* device);

}  // namespace accelerator
