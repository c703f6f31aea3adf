// The learning rate as a function of the number of updates so far.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace msrt {

enum class ScheduleKind : uint8_t { kConstant, kStep, kCosine, kOneCycle, kPolynomial };
std::string_view ScheduleName(ScheduleKind kind);

// Steps are updates of the parameters. During the first `warmup_steps` the rate rises linearly from
// `warmup_start` times its value to that value; the schedule itself begins after them.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double rate = 0.01;        // the highest rate
  double final_rate = 0;     // cosine, polynomial: the rate at `total_steps` and after
  int64_t total_steps = 0;   // of the run; cosine, one-cycle and polynomial need it
  int64_t warmup_steps = 0;  // not for one-cycle, which has its own
  double warmup_start = 0;
  // Step: every `step_size` steps, or at each of `milestones` if there are any, the rate is
  // multiplied by `factor`.
  int64_t step_size = 0;
  std::vector<int64_t> milestones;
  double factor = 0.1;
  double power = 1;  // polynomial
  // One-cycle: the rate rises from rate / divisor for a part of the steps, then falls to
  // rate / divisor / final_divisor; both along a cosine.
  double rising_part = 0.3, divisor = 25, final_divisor = 1e4;

  // An error names the field and the range it must be in.
  Status Check() const;
  // Requires Check() and step >= 0.
  double RateAt(int64_t step) const;
};

// Reads "constant", "step:SIZE[:FACTOR]", "cosine[:FINAL]", "polynomial[:POWER[:FINAL]]" or
// "onecycle[:RISING_PART]", each followed by "+warmup:STEPS" if there is one. `rate` and
// `total_steps` are those of the result.
Result<Schedule> ParseSchedule(std::string_view text, double rate, int64_t total_steps);

}  // namespace msrt
