#include "core/train/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

namespace msrt {
namespace {

constexpr std::string_view kScheduleNames[] = {"constant", "step", "cosine", "onecycle",
                                               "polynomial"};

bool HasEnd(ScheduleKind kind) {
  return kind == ScheduleKind::kCosine || kind == ScheduleKind::kOneCycle ||
         kind == ScheduleKind::kPolynomial;
}

// Half a cosine from `from` at 0 to `to` at 1.
double CosineBetween(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

// The part of a way of `steps` that is done after `step`, at most 1.
double PartDone(double step, double steps) {
  return steps <= 0 ? 1 : std::clamp(step / steps, 0.0, 1.0);
}

double OneCycleAt(const Schedule& s, int64_t step) {
  const double first = s.rate / s.divisor, last = first / s.final_divisor;
  // The highest rate is reached at this step, as a fraction: PyTorch's OneCycleLR counts so.
  const double top = s.rising_part * static_cast<double>(s.total_steps) - 1;
  const auto at = static_cast<double>(step);
  if (at <= top) return CosineBetween(first, s.rate, PartDone(at, top));
  return CosineBetween(s.rate, last,
                       PartDone(at - top, static_cast<double>(s.total_steps) - 1 - top));
}

double StepRateAt(const Schedule& s, int64_t step) {
  int64_t drops = 0;
  if (s.milestones.empty()) drops = step / s.step_size;
  else drops = std::upper_bound(s.milestones.begin(), s.milestones.end(), step) -
               s.milestones.begin();
  return s.rate * std::pow(s.factor, static_cast<double>(drops));
}

// Splits off the text before the first `separator`, and the separator.
std::string_view TakeUntil(std::string_view* text, char separator) {
  const size_t at = text->find(separator);
  const std::string_view head = text->substr(0, at);
  text->remove_prefix(at == std::string_view::npos ? text->size() : at + 1);
  return head;
}

Result<double> NumberIn(std::string_view text, std::string_view whole) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    return InvalidArgument("schedule '", whole, "': '", text, "' is not a number");
  return number;
}

Status SetNumbers(Schedule* schedule, std::string_view rest, std::string_view whole) {
  std::vector<double> numbers;
  while (!rest.empty()) {
    MSRT_ASSIGN_OR_RETURN(const double number, NumberIn(TakeUntil(&rest, ':'), whole));
    numbers.push_back(number);
  }
  std::vector<double*> fields;
  double step_size = 0;
  if (schedule->kind == ScheduleKind::kStep) fields = {&step_size, &schedule->factor};
  if (schedule->kind == ScheduleKind::kCosine) fields = {&schedule->final_rate};
  if (schedule->kind == ScheduleKind::kPolynomial)
    fields = {&schedule->power, &schedule->final_rate};
  if (schedule->kind == ScheduleKind::kOneCycle) fields = {&schedule->rising_part};
  if (numbers.size() > fields.size()) {
    return InvalidArgument("schedule '", whole, "' has ", numbers.size(), " numbers, at most ",
                           fields.size(), " are allowed");
  }
  for (size_t i = 0; i < numbers.size(); ++i) *fields[i] = numbers[i];
  if (schedule->kind == ScheduleKind::kStep) {
    if (step_size != std::floor(step_size) || step_size < 1 || step_size > 1e15)
      return InvalidArgument("schedule '", whole, "' needs a step size of at least 1: step:1000");
    schedule->step_size = static_cast<int64_t>(step_size);
  }
  return OkStatus();
}

}  // namespace

std::string_view ScheduleName(ScheduleKind kind) {
  return kScheduleNames[static_cast<size_t>(kind)];
}

Status Schedule::Check() const {
  const std::string_view name = ScheduleName(kind);
  if (!(rate >= 0) || !std::isfinite(rate))
    return InvalidArgument("learning rate ", rate, " must be a number of at least 0");
  if (HasEnd(kind) && total_steps < 1)
    return InvalidArgument("schedule ", name, ": total_steps = ", total_steps,
                           ", must be at least 1");
  if (warmup_steps < 0 || (HasEnd(kind) && warmup_steps > total_steps))
    return InvalidArgument("schedule ", name, ": warmup_steps = ", warmup_steps,
                           ", must be between 0 and total_steps");
  if (kind == ScheduleKind::kOneCycle && warmup_steps > 0)
    return InvalidArgument("schedule onecycle rises by itself; warmup_steps must be 0");
  if (kind == ScheduleKind::kStep && milestones.empty() && step_size < 1)
    return InvalidArgument("schedule step: step_size = ", step_size, ", must be at least 1");
  if (!std::is_sorted(milestones.begin(), milestones.end()))
    return InvalidArgument("schedule step: milestones must increase");
  if (kind == ScheduleKind::kOneCycle &&
      (!(rising_part > 0) || !(rising_part < 1) || !(divisor > 0) || !(final_divisor > 0))) {
    return InvalidArgument("schedule onecycle: rising_part = ", rising_part, ", divisor = ",
                           divisor, ", final_divisor = ", final_divisor,
                           "; the first must be between 0 and 1, the others positive");
  }
  return OkStatus();
}

double Schedule::RateAt(int64_t step) const {
  if (kind == ScheduleKind::kOneCycle) return OneCycleAt(*this, step);
  if (step < warmup_steps) {
    const double part = static_cast<double>(step) / static_cast<double>(warmup_steps);
    return rate * (warmup_start + (1 - warmup_start) * part);
  }
  const int64_t after = step - warmup_steps;
  const double part =
      PartDone(static_cast<double>(after), static_cast<double>(total_steps - warmup_steps));
  switch (kind) {
    case ScheduleKind::kStep:
      return StepRateAt(*this, after);
    case ScheduleKind::kCosine:
      return CosineBetween(rate, final_rate, part);
    case ScheduleKind::kPolynomial:
      return final_rate + (rate - final_rate) * std::pow(1 - part, power);
    default:
      return rate;
  }
}

Result<Schedule> ParseSchedule(std::string_view text, double rate, int64_t total_steps) {
  Schedule schedule;
  schedule.rate = rate;
  schedule.total_steps = total_steps;
  std::string_view warmup = text;
  std::string_view rest = TakeUntil(&warmup, '+');
  const std::string_view name = TakeUntil(&rest, ':');
  const auto* found = std::find(std::begin(kScheduleNames), std::end(kScheduleNames), name);
  if (found == std::end(kScheduleNames)) {
    return InvalidArgument("schedule '", text, "': unknown kind '", name,
                           "'; use constant, step, cosine, polynomial or onecycle");
  }
  schedule.kind = static_cast<ScheduleKind>(found - std::begin(kScheduleNames));
  MSRT_RETURN_IF_ERROR(SetNumbers(&schedule, rest, text));
  if (!warmup.empty()) {
    if (TakeUntil(&warmup, ':') != "warmup")
      return InvalidArgument("schedule '", text, "': after '+' must follow warmup:STEPS");
    MSRT_ASSIGN_OR_RETURN(const double steps, NumberIn(warmup, text));
    if (steps < 0 || steps > 1e15 || steps != std::floor(steps))
      return InvalidArgument("schedule '", text, "': the warm-up must be a number of steps");
    schedule.warmup_steps = static_cast<int64_t>(steps);
  }
  MSRT_RETURN_IF_ERROR(schedule.Check());
  return schedule;
}

}  // namespace msrt
