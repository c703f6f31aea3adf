// Geometry and colour of pictures. A label map follows the geometry by nearest neighbour.
#pragma once

#include "core/train/data/sample.h"

namespace msrt {

// Bilinear; a picture that shrinks is averaged over the area of an output pixel, as Pillow does.
// Requires positive sizes.
void ResizePicture(int64_t rows, int64_t cols, Picture* picture);

// The window at (row, col), which may be outside: pixels there are 0, their labels are ignored.
void CropPicture(int64_t row, int64_t col, int64_t rows, int64_t cols, Picture* picture);

void FlipColumns(Picture* picture);  // left to right
void FlipRows(Picture* picture);     // top to bottom

// Turns by quarters, counter-clockwise as numpy.rot90.
void TurnPicture(int quarters, Picture* picture);

// Turns about the centre, counter-clockwise, bilinear; the size stays, pixels from outside are 0.
void RotatePicture(double degrees, Picture* picture);

// Multiplies brightness, contrast (the distance to the mean grey of the picture) and saturation
// (the distance to the grey of the pixel; pictures of three channels only). Values are limited to 0
// to 255 after each.
struct ColorFactors {
  double brightness = 1, contrast = 1, saturation = 1;
};
void ChangeColors(const ColorFactors& factors, Picture* picture);

// Makes a picture with the given number of channels: grey becomes three equal ones, three become
// grey (0.299, 0.587, 0.114), an alpha channel is left out. Errors name both numbers.
Status ConvertChannels(int64_t channels, Picture* picture);

}  // namespace msrt
