#include "tests/fuzz/driver.h"
#include "tests/fuzz/targets.h"

const msrt::testing::FuzzTarget msrt::testing::kFuzzTarget = FuzzLoad;
