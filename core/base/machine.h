// What the cores of this machine do together at best: the scale of every estimate of time.
#pragma once

#include <string>

#include "core/base/parallel_for.h"

namespace msrt {

struct Machine {
  double flops_per_second = 0;  // f32; a multiply-add counts two
  double bytes_per_second = 0;  // read and written, beyond the caches
};

// What so many threads usually do on a processor with this one's instructions. Cheap.
Machine TypicalMachine(int threads);

// What the threads of `parallel` do now, in about `seconds`, and never longer than a few times
// that. Takes 64 MiB meanwhile.
Result<Machine> MeasureMachine(ParallelFor& parallel, double seconds = 0.05);

// "AMD EPYC 7763 64-Core Processor"; "unknown" where the system does not tell.
std::string ProcessorName();

}  // namespace msrt
