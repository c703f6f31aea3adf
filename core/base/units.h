// Times and sizes as people read them: three or four digits with the unit that fits.
#pragma once

#include <string>

namespace msrt {

std::string SecondsText(double seconds);  // "4.56 us", "12.34 ms", "1.5 s"
std::string BytesText(double bytes);      // "12 B", "34.5 kB", "1.2 MB", "3.4 GB"

}  // namespace msrt
