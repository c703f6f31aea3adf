#include "tests/fuzz/image_subject.h"

const msrt::testing::FuzzSubject msrt::testing::kFuzzSubject = {
    FuzzImage, [] { return ImageSeeds(".jpg"); }, MutateBytes, nullptr};
