// Where an image is on the earth: an affine transform from pixels to model coordinates and the keys
// of GeoTIFF that name the coordinate system. The keys are carried along unread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace msrt {

// A point of the image (pixel coordinates, corners at integers) and its model coordinates.
struct ControlPoint {
  double col = 0, row = 0, depth = 0, x = 0, y = 0, z = 0;
  bool operator==(const ControlPoint&) const = default;
};

struct GeoReference {
  bool has_transform = false;
  // x = t[0] + col * t[1] + row * t[2], y = t[3] + col * t[4] + row * t[5]; (0, 0) is the outer
  // corner of the first pixel.
  std::array<double, 6> transform{0, 1, 0, 0, 0, 1};
  std::vector<ControlPoint> control_points = {};  // only where there is no transform
  std::vector<uint16_t> keys = {};                // GeoKeyDirectory
  std::vector<double> doubles = {};               // GeoDoubleParams
  std::string ascii = {};                         // GeoAsciiParams
  std::string projection = {};                    // well-known text, from GDAL only

  bool empty() const { return !has_transform && control_points.empty() && keys.empty(); }
  bool operator==(const GeoReference&) const = default;
};

// The reference of a result whose pixel (0, 0) begins at pixel (row, col) of the source and whose
// pixels are `row_scale` x `col_scale` source pixels.
GeoReference Rescaled(const GeoReference& geo, double row, double col, double row_scale,
                      double col_scale);

// Whether the keys say that model coordinates belong to the centres of pixels.
bool PixelIsPoint(const GeoReference& geo);

// The three tags of GeoTIFF that hold the transform; empty: the tag is absent.
struct GeoTags {
  std::vector<double> scale = {};      // ModelPixelScale, 3 values
  std::vector<double> tiepoints = {};  // ModelTiepoint, a multiple of 6 values
  std::vector<double> matrix = {};     // ModelTransformation, 16 values
};

// Sets transform or control points from the tags; `geo->keys` is set already. Ignores tags with
// wrong counts or values that are not finite.
void SetFromTags(const GeoTags& tags, GeoReference* geo);
GeoTags ToTags(const GeoReference& geo);

}  // namespace msrt
