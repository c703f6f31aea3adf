// How long the calling thread has computed: what to measure where other work on the machine must
// not count.
#pragma once

#include <ctime>

namespace msrt {

inline double ThreadCpuMillis() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

}  // namespace msrt
