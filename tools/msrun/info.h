// Describes a model without compiling it, and the delegates that could run it.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/msrun/workload.h"

namespace msrt {

// Always has "delegates"; the rest only if the arguments name a model.
Result<nlohmann::json> Info(const Arguments& arguments);
void PrintInfo(const nlohmann::json& info);

}  // namespace msrt
