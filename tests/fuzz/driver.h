// What a fuzz target gives to whoever drives it: libFuzzer (libfuzzer_driver.cc) or a program of our own (standalone_driver.cc).
#pragma once

#include "tests/fuzz/targets.h"

namespace msrt::testing {

extern const FuzzTarget kFuzzTarget;

}  // namespace msrt::testing
