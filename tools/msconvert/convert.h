// The way of a conversion: read, check, optimise, store weights small or packed, write, verify.
#pragma once

#include "tools/msconvert/arguments.h"

namespace msrt {

// Says on standard output what was done and on standard error what was not.
int Convert(const ConvertArguments& arguments);

}  // namespace msrt
