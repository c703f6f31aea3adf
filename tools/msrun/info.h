// What msrun tells of a model without compiling it, and of the delegates that could run it.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/msrun/workload.h"

namespace msrt {

// "delegates" always; the rest only where the arguments name a model.
Result<nlohmann::json> Info(const Arguments& arguments);
void PrintInfo(const nlohmann::json& info);

}  // namespace msrt
