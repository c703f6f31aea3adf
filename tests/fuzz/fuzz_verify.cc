#include "core/model/mutate_file.h"
#include "tests/fuzz/driver.h"
#include "tests/fuzz/seeds.h"

const msrt::testing::FuzzSubject msrt::testing::kFuzzSubject = {FuzzVerify, FuzzSeeds, MutateFile,
                                                                FitHeader};
