// The stages of a conversion: read, check, optimise, store weights small or packed, write, verify.
#pragma once

#include "tools/msconvert/arguments.h"

namespace msrt {

// Converts and returns the exit code. Prints results to standard output, problems to standard
// error.
int Convert(const ConvertArguments& arguments);

}  // namespace msrt
