// The plan of a run over an image as a picture (SVG): for rolling rows the strips, and the rows and
// memory that each value retains; for tiles the grid and the part of the image that a tile reads.
#pragma once

#include <string>

#include "core/image/executors/image_runner.h"

namespace msrt {

// `title` is the first line: what runs on which image.
Result<std::string> ImagePlanSvg(const ImageRunner& runner, std::string_view title);

}  // namespace msrt
