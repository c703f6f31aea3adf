// What this machine can do at best, measured in about 50 ms: the yardstick for GFLOP/s.
#pragma once

#include "core/base/parallel_for.h"

namespace msrt {

struct MachinePeak {
  double gflops = 0;             // f32 fused multiply-adds on all threads of the team, two operations each
  double gbytes_per_second = 0;  // reading memory that no cache holds
};
MachinePeak MeasurePeak(ParallelFor& parallel);

}  // namespace msrt
