#include "core/image/files/geo_reference.h"

#include <cmath>

namespace msrt {
namespace {

constexpr uint16_t kRasterTypeKey = 1025, kRasterPixelIsPoint = 2;

bool AllFinite(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Moves the origin by a part of a pixel.
void Shift(double pixels, std::array<double, 6>* t) {
  (*t)[0] += pixels * ((*t)[1] + (*t)[2]);
  (*t)[3] += pixels * ((*t)[4] + (*t)[5]);
}

}  // namespace

GeoReference Rescaled(const GeoReference& geo, double row, double col, double row_scale,
                      double col_scale) {
  GeoReference result = geo;
  auto& t = result.transform;
  t[0] += col * t[1] + row * t[2];
  t[3] += col * t[4] + row * t[5];
  t[1] *= col_scale;
  t[4] *= col_scale;
  t[2] *= row_scale;
  t[5] *= row_scale;
  for (ControlPoint& point : result.control_points) {
    point.col = (point.col - col) / col_scale;
    point.row = (point.row - row) / row_scale;
  }
  return result;
}

bool PixelIsPoint(const GeoReference& geo) {
  // The directory begins with 4 numbers; then each key has 4: id, location, count, value.
  for (size_t i = 4; i + 3 < geo.keys.size(); i += 4) {
    if (geo.keys[i] == kRasterTypeKey && geo.keys[i + 1] == 0)
      return geo.keys[i + 3] == kRasterPixelIsPoint;
  }
  return false;
}

void SetFromTags(const GeoTags& tags, GeoReference* geo) {
  const bool finite = AllFinite(tags.scale) && AllFinite(tags.tiepoints) && AllFinite(tags.matrix);
  if (!finite) return;
  const double shift = PixelIsPoint(*geo) ? 0.5 : 0;
  auto& t = geo->transform;
  if (tags.matrix.size() == 16) {
    const auto& m = tags.matrix;
    t = {m[3], m[0], m[1], m[7], m[4], m[5]};
    geo->has_transform = true;
  } else if (tags.scale.size() >= 2 && tags.tiepoints.size() == 6) {
    const auto& p = tags.tiepoints;
    // Rows go down, so y falls by the scale.
    t = {p[3] - p[0] * tags.scale[0],
         tags.scale[0],
         0,
         p[4] + p[1] * tags.scale[1],
         0,
         -tags.scale[1]};
    geo->has_transform = true;
  } else if (!tags.tiepoints.empty() && tags.tiepoints.size() % 6 == 0) {
    for (size_t i = 0; i < tags.tiepoints.size(); i += 6) {
      const double* p = &tags.tiepoints[i];
      geo->control_points.push_back({p[0] + shift, p[1] + shift, p[2], p[3], p[4], p[5]});
    }
  }
  if (geo->has_transform) Shift(-shift, &t);
}

GeoTags ToTags(const GeoReference& geo) {
  GeoTags tags;
  const double shift = PixelIsPoint(geo) ? 0.5 : 0;
  if (geo.has_transform) {
    std::array<double, 6> t = geo.transform;
    Shift(shift, &t);
    if (t[2] == 0 && t[4] == 0 && t[1] > 0 && t[5] < 0) {
      tags.scale = {t[1], -t[5], 0};
      tags.tiepoints = {0, 0, 0, t[0], t[3], 0};
    } else {
      tags.matrix = {t[1], t[2], 0, t[0], t[4], t[5], 0, t[3], 0, 0, 0, 0, 0, 0, 0, 1};
    }
  }
  for (const ControlPoint& p : geo.control_points) {
    tags.tiepoints.insert(tags.tiepoints.end(),
                          {p.col - shift, p.row - shift, p.depth, p.x, p.y, p.z});
  }
  return tags;
}

}  // namespace msrt
