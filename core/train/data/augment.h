// Random changes of training pictures, in the order in which they are written:
//   "crop:32:4 hflip resize:100 rotate:15 color:0.2,0.2,0.2 mixup:0.2"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/train/data/sample.h"

namespace msrt {

struct AugmentStep {
  enum class Kind {
    kCrop,         // a random window of rows x cols, after `padding` zeros on each side
    kCenterCrop,   // the middle rows x cols
    kResize,       // to rows x cols
    kZoom,         // a random window of at least `amount` of the area, resized to rows x cols
    kFlipColumns,  // with probability `amount`
    kFlipRows,
    kTurn,    // by a random number of quarters
    kRotate,  // by -amount to amount degrees
    kColor,   // by factors of 1 - x to 1 + x
  };
  Kind kind = Kind::kResize;
  int64_t rows = 0, cols = 0, padding = 0;
  double amount = 0, contrast = 0, saturation = 0;
};

struct Augmentation {
  std::vector<AugmentStep> steps = {};
  // Each sample of a batch is mixed with the next one, in a ratio from the distribution
  // Beta(mixup, mixup); targets become one probability per class. 0: no mixing.
  double mixup = 0;
};

// Parses steps separated by spaces. Errors name the step and list what there is.
Result<Augmentation> ParseAugmentation(std::string_view text);

// Applies the steps. Every step draws its own numbers from a fork of `random`.
Status Augment(const std::vector<AugmentStep>& steps, const SampleRandom& random, Picture* picture);

// A ratio from Beta(alpha, alpha), for mixing. Requires 0 < alpha <= 4.
double DrawMixRatio(double alpha, SampleRandom random);

}  // namespace msrt
