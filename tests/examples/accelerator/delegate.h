// The accelerator as the functions of msrt_delegate_api: query, compile, bind and run.
#pragma once

#include <vector>

#include "core/abi/msrt_plugin.h"

namespace accelerator {

// `self` is a Handle. The names of its devices are the caller's.
msrt_delegate_api DelegateApi(const std::vector<const char*>& devices);

}  // namespace accelerator
