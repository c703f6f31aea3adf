// The split of an image over ranks as a picture (SVG): who owns which part, halos, messages and
// memory.
#pragma once

#include <string>

#include "core/parallel/split.h"

namespace msrt {

struct SplitPicture {
  std::string title;
  Dims image;                           // [1, channels, rows, columns]
  Dims output;                          // of the first one
  std::vector<RankModule> ranks;        // without modules
  std::vector<int64_t> expected_bytes;  // by rank
  size_t limit_bytes = 0;               // of each rank
};

std::string SplitSvg(const SplitPicture& picture);

}  // namespace msrt
