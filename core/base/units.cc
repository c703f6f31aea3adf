#include "core/base/units.h"

#include <cstdio>

namespace msrt {

std::string SecondsText(double seconds) {
  char text[32];
  if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  else if (seconds < 1) std::snprintf(text, sizeof text, "%.4g ms", seconds * 1e3);
  else std::snprintf(text, sizeof text, "%.4g s", seconds);
  return text;
}

std::string BytesText(double bytes) {
  char text[32];
  if (bytes < 1e3) std::snprintf(text, sizeof text, "%.0f B", bytes);
  else if (bytes < 1e6) std::snprintf(text, sizeof text, "%.1f kB", bytes * 1e-3);
  else if (bytes < 1e9) std::snprintf(text, sizeof text, "%.1f MB", bytes * 1e-6);
  else std::snprintf(text, sizeof text, "%.1f GB", bytes * 1e-9);
  return text;
}

}  // namespace msrt
