// Windows of large images whose pixels have labels: random ones for training, a grid for
// evaluation. Only the windows are read.
#pragma once

#include "core/train/data/sample.h"

namespace msrt {

struct ImageWindowOptions {
  int64_t rows = 256, cols = 256;
  // The number of random windows in an epoch; 0: the grid, which covers every pixel.
  int64_t windows = 0;
  int64_t classes = 0;  // 0: one more than the largest label, which needs a pass over all labels
};

// `folder` has images/NAME.EXT and labels/NAME.EXT; the files of a pair have one stem and one size.
// A label file has one channel; 255 of a u8 file is ignored.
Result<std::unique_ptr<SampleSource>> OpenImageWindows(const std::string& folder,
                                                       const ImageWindowOptions& options);

}  // namespace msrt
