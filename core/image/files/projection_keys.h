// The coordinate systems that GDAL describes by well-known text, as keys of GeoTIFF.
#pragma once

#include "core/image/files/geo_reference.h"

namespace msrt {

// Sets the keys that name the coordinate system of `geo->projection` by its EPSG code, of both
// versions of the text; of a compound one, those of its horizontal part. Returns whether
// the text had a code. Other systems have none in a file that msrt writes.
bool SetKeysFromProjection(GeoReference* geo);

}  // namespace msrt
