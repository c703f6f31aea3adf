// Checks that the outputs of a model follow the image, so that they can be computed by rows and
// tiles: the rows of an output follow the rows of the image, its columns the columns.
#pragma once

#include "core/run/piece_runner.h"

namespace msrt {

// Refuses other outputs (boxes of detections, classes of the whole image) by name. Their shapes
// alone may look like those of images.
Status CheckRowsFollowImage(const PieceRunner& runner);

}  // namespace msrt
