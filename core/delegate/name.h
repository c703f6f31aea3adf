// Names of delegates and devices.
#pragma once

#include <string_view>

#include "core/base/status.h"

namespace msrt {

// A name is up to 64 of a-z, 0-9 and _. `kind` is for the message: "delegate", "device".
Status CheckName(std::string_view kind, const char* name);

}  // namespace msrt
