#include "tests/examples/accelerator/faults.h"

namespace accelerator {

bool Faults::Happens(double probability) {
  if (probability <= 0) return false;
  std::lock_guard lock(mutex_);
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

double Faults::NextDelayMicros() {
  if (options_.delay_us <= 0) return options_.latency_us;
  std::lock_guard lock(mutex_);
  return options_.latency_us +
         std::uniform_real_distribution<double>(0, options_.delay_us)(random_);
}

Failure Faults::OnCompile() {
  return Happens(options_.compile_fails) ? Failed("this compilation was chosen to fail")
                                         : Failure{};
}

Failure Faults::OnCall() const {
  const bool dead = options_.dies_after >= 0 && operations_ > options_.dies_after;
  return dead ? Failed("the accelerator is dead") : Failure{};
}

Failure Faults::OnOperation(const char* what, std::atomic<int64_t>* count, int64_t fails_at,
                            double probability) {
  ++operations_;
  if (const Failure dead = OnCall(); !dead.ok()) return dead;
  const int64_t number = (*count)++;
  if (number == fails_at || Happens(probability))
    return Failed(std::string(what) + " " + std::to_string(number) + " was chosen to fail");
  return {};
}

}  // namespace accelerator
