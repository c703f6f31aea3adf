// CPU time of the calling thread, for measurements in which other load on the machine must not
// count.
#pragma once

#include <ctime>

namespace msrt {

inline double ThreadCpuMillis() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

}  // namespace msrt
