// Two .npy arrays: samples (N x C x H x W, N x H x W, or N x any dims) and N integer labels, or
// N x H x W labels of pixels.
#pragma once

#include "core/train/data/sample.h"

namespace msrt {

Result<std::unique_ptr<SampleSource>> OpenNpyPair(const std::string& samples,
                                                  const std::string& labels);

}  // namespace msrt
