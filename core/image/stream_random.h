// Random networks over images, for tests: every layer that pieces must compute exactly.
#pragma once

#include <random>

#include "ops/builder.h"

namespace msrt::testing {

struct RandomImageNet {
  Module module;
  Dims image;
  std::string text;  // the layers
};

// Returns nothing if the layers drawn do not fit together.
std::optional<RandomImageNet> DrawImageNet(uint32_t seed);

}  // namespace msrt::testing
