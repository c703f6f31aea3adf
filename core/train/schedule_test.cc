#include "core/train/schedule.h"

#include <gtest/gtest.h>

namespace msrt {
namespace {

Schedule Parsed(std::string_view text, double rate = 0.1, int64_t steps = 10) {
  auto schedule = ParseSchedule(text, rate, steps);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  return schedule.ok() ? *schedule : Schedule();
}

std::vector<double> Rates(const Schedule& schedule, int64_t steps) {
  std::vector<double> rates;
  for (int64_t s = 0; s < steps; ++s) rates.push_back(schedule.RateAt(s));
  return rates;
}

void ExpectNear(const std::vector<double>& rates, const std::vector<double>& expected) {
  ASSERT_EQ(rates.size(), expected.size());
  for (size_t i = 0; i < rates.size(); ++i)
    EXPECT_NEAR(rates[i], expected[i], 1e-12) << "step " << i;
}

TEST(Schedule, ConstantWithWarmUpRisesLinearly) {
  ExpectNear(Rates(Parsed("constant+warmup:4"), 6), {0, 0.025, 0.05, 0.075, 0.1, 0.1});
}

TEST(Schedule, StepMultipliesEverySize) {
  ExpectNear(Rates(Parsed("step:2:0.5"), 6), {0.1, 0.1, 0.05, 0.05, 0.025, 0.025});
}

TEST(Schedule, MilestonesAreSteps) {
  Schedule s;
  s.kind = ScheduleKind::kStep;
  s.rate = 1;
  s.milestones = {2, 5};
  ASSERT_TRUE(s.Check().ok());
  ExpectNear(Rates(s, 6), {1, 1, 0.1, 0.1, 0.1, 0.01});
}

// Expected numbers: torch.optim.lr_scheduler, CosineAnnealingLR(T_max=4, eta_min=0.01),
// PolynomialLR(total_iters=4, power=2) and OneCycleLR(max_lr=0.1, total_steps=10).
TEST(Schedule, CosineFollowsPyTorch) {
  ExpectNear(Rates(Parsed("cosine:0.01", 0.1, 4), 5),
             {0.1, 0.086819805153394642, 0.055, 0.023180194846605365, 0.01});
}

TEST(Schedule, PolynomialFollowsPyTorch) {
  ExpectNear(Rates(Parsed("polynomial:2", 0.1, 4), 6), {0.1, 0.05625, 0.025, 0.00625, 0, 0});
}

TEST(Schedule, OneCycleFollowsPyTorch) {
  ExpectNear(Rates(Parsed("onecycle", 0.1, 10), 10),
             {0.0040000000000000036, 0.052000000000000005, 0.1, 0.09504846320134738,
              0.0811745653949763, 0.06112620219362893, 0.03887419780637107, 0.0188258346050237,
              0.004951936798652629, 4e-07});
}

TEST(Schedule, RefusesWhatItCannotRead) {
  for (const char* text : {"", "linear", "step", "step:0", "step:1.5", "cosine:x", "cosine:1:2",
                           "constant:1", "constant+warm:3", "constant+warmup:-1", "onecycle:2",
                           "onecycle+warmup:2", "cosine+warmup:11"}) {
    EXPECT_FALSE(ParseSchedule(text, 0.1, 10).ok()) << text;
  }
  EXPECT_FALSE(ParseSchedule("cosine", 0.1, 0).ok());
  EXPECT_FALSE(ParseSchedule("constant", -1, 10).ok());
}

}  // namespace
}  // namespace msrt
