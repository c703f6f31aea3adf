#include "core/train/comm_speed.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/clock.h"

namespace msrt {
namespace {

constexpr int64_t kMinBucket = int64_t{64} << 10, kMaxBucket = int64_t{64} << 20;

Status AwaitResult(Result<CommWorkPtr> work) {
  if (!work.ok()) return std::move(work).status();
  return (*work)->Wait({});
}

// The shortest of `rounds` times of an AllReduce: others were disturbed.
Result<double> SecondsToReduce(Communicator& comm, size_t count, int rounds) {
  std::vector<float> numbers(count);
  double best = HUGE_VAL;
  for (int i = 0; i < rounds; ++i) {
    MSRT_RETURN_IF_ERROR(AwaitResult(comm.Barrier()));
    const int64_t begin = MonotonicNanos();
    MSRT_RETURN_IF_ERROR(AwaitResult(comm.AllReduce(numbers.data(), count, CommType::kF32,
                                                    CommReduce::kSum, CommOrder::kFixedTree)));
    best = std::min(best, static_cast<double>(MonotonicNanos() - begin) * 1e-9);
  }
  return best;
}

}  // namespace

Result<CommSpeed> MeasureCommSpeed(Communicator& comm) {
  constexpr size_t kNumbers = size_t{1} << 20;
  CommSpeed speed;
  MSRT_ASSIGN_OR_RETURN(speed.latency_seconds, SecondsToReduce(comm, 1, 20));
  MSRT_ASSIGN_OR_RETURN(const double seconds, SecondsToReduce(comm, kNumbers, 4));
  speed.bytes_per_second =
      sizeof(float) * kNumbers / std::max(seconds - speed.latency_seconds, 1e-6);
  MSRT_RETURN_IF_ERROR(AwaitResult(comm.Broadcast(&speed, sizeof speed, 0)));
  return speed;
}

int64_t BucketBytes(const CommSpeed& speed, int64_t all_bytes) {
  const double best =
      std::sqrt(speed.latency_seconds * speed.bytes_per_second * static_cast<double>(all_bytes));
  return std::clamp(static_cast<int64_t>(best), kMinBucket, kMaxBucket);
}

}  // namespace msrt
