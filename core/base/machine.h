// Peak throughput of all cores of this machine together: the scale of every estimate of time.
#pragma once

#include <string>

#include "core/base/parallel_for.h"

namespace msrt {

struct Machine {
  double flops_per_second = 0;  // f32; a multiply-add counts two
  double bytes_per_second = 0;  // read and written, beyond the caches
};

// The typical peak of `threads` threads on a processor with this one's instructions. Cheap.
Machine TypicalMachine(int threads);

// Measures the threads of `parallel` for about `seconds`, never longer than a few times that.
// Allocates 64 MiB meanwhile.
Result<Machine> MeasureMachine(ParallelFor& parallel, double seconds = 0.05);

// "AMD EPYC 7763 64-Core Processor"; "unknown" if the system does not report it.
std::string ProcessorName();

}  // namespace msrt
