// How fast the ranks of a training run reduce gradients, measured when it starts.
#pragma once

#include <cstdint>

#include "core/comm/communicator.h"

namespace msrt {

struct CommSpeed {
  double latency_seconds = 0;  // of an AllReduce of one number
  double bytes_per_second = 0;
};

// A collective: all ranks get the same numbers.
Result<CommSpeed> MeasureCommSpeed(Communicator& comm);

// The size of buckets (core/parallel/gradient_buckets.h) that is fastest for gradients of
// `all_bytes`. Every bucket costs the latency once; the last one, whose gradients are ready when
// the backward pass ends, is not hidden. The sum of both is least for sqrt(latency * bandwidth *
// all_bytes).
int64_t BucketBytes(const CommSpeed& speed, int64_t all_bytes);

}  // namespace msrt
