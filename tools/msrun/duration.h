// Durations as people read them.
#pragma once

#include <cstdio>
#include <string>

namespace msrt {

// "1 h 02 min", "3 min 20 s", "12 s".
inline std::string DurationText(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  char text[64];
  if (s >= 3600) std::snprintf(text, sizeof text, "%lld h %02lld min", s / 3600, s / 60 % 60);
  else if (s >= 60) std::snprintf(text, sizeof text, "%lld min %02lld s", s / 60, s % 60);
  else std::snprintf(text, sizeof text, "%lld s", s);
  return text;
}

}  // namespace msrt
