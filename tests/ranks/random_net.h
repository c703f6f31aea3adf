// Random networks over images, and random grids of ranks to split them over.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "core/parallel/split_plan.h"
#include "ops/builder.h"

namespace msrt::testing {

struct RandomNet {
  Module module;
  Dims image;
  std::string text;  // its layers
};

// A chain of 1 to 8 layers with skips: convolutions (kernels 1 to 7, strides 1 to 4, dilations 1 to
// 3, groups, some wide enough for Winograd's arithmetic), pools, transposed convolutions, resizes,
// pads, statistics of the whole image. A batch of `max_batch` or 1. Returns nothing if the layers
// drawn do not fit together.
std::optional<RandomNet> DrawNet(int64_t max_batch, std::mt19937* random);

// 1 to 8 ranks along one or two dims, in parts of any sizes, with random rules.
SplitOptions DrawSplit(const Dims& image, std::mt19937* random);
std::string Describe(const SplitOptions& split);

}  // namespace msrt::testing
