// Random networks on images: streamed and tiled results have the bits of an unsplit run. The
// variables MSRT_IMAGE_CONFIGURATIONS and MSRT_IMAGE_SEED run more of them by hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "core/image/image_runner.h"
#include "core/image/stream_model.h"
#include "core/image/stream_random.h"
#include "core/image/stream_testing.h"

namespace msrt::testing {
namespace {

int64_t Variable(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct Tally {
  int64_t configurations = 0, runs = 0, phases = 0, refused = 0;
};

// The number in "set the limit to N bytes or more"; 0 if the message has none.
size_t AmountIn(const std::string& message) {
  constexpr std::string_view kBefore = "set the limit to ";
  const size_t at = message.find(kBefore);
  return at == std::string::npos
             ? 0
             : std::strtoull(message.c_str() + at + kBefore.size(), nullptr, 10);
}

std::string FirstDifference(std::span<const std::byte> got, std::span<const std::byte> expected) {
  for (size_t i = 0; i + sizeof(float) <= std::min(got.size(), expected.size());
       i += sizeof(float)) {
    float a, b;
    std::memcpy(&a, got.data() + i, sizeof(a));
    std::memcpy(&b, expected.data() + i, sizeof(b));
    if (std::memcmp(&a, &b, sizeof(a)) == 0) continue;
    char text[64];
    std::snprintf(text, sizeof(text), ": %.9g instead of %.9g", a, b);
    return StrCat(" at ", i / sizeof(float), text);
  }
  return " has another size";
}

// One network, compiled for one set of delegates.
class Checks {
 public:
  Checks(uint32_t seed, const RandomImageNet& net, bool reference, Tally* tally)
      : seed_(seed),
        what_(StrCat("seed ", seed, reference ? " reference: " : " all: ", net.text)),
        image_(RandomImage(net.image, seed)),
        tally_(*tally) {
    CompileOptions options;
    if (reference) options.place.delegates = {"reference"};
    auto model = CompileForImage(TestEnvironment(), net.module,
                                 {net.image[1], net.image[2], net.image[3]}, options);
    EXPECT_TRUE(model.ok()) << what_ << ": " << model.status().message();
    if (model.ok()) model_ = *std::move(model);
  }

  void Run() {
    if (model_ == nullptr) return;
    auto session = Session::Create(model_, 0, {});
    auto whole = RunSession(**session, {image_});
    ASSERT_TRUE(whole.ok()) << what_ << ": " << whole.status().message();
    whole_ = *std::move(whole);
    std::mt19937 random(seed_ * 7 + 1);
    const auto pick = [&](uint32_t high) { return 1 + static_cast<int64_t>(random() % high); };
    ImagePlanOptions plan{.memory_limit_bytes = size_t{1} << 30};
    plan.strip_rows = pick(9), plan.tile_rows = pick(17), plan.tile_columns = pick(17);
    plan.executor = ImageExecutor::kStream;
    RunPlanned(plan);
    plan.executor = ImageExecutor::kTiles;
    RunPlanned(plan);
    // Above the memory for scratch.
    const size_t limit = (size_t{1} << 20) + static_cast<size_t>(pick(1 << 20));
    RunPlanned({.memory_limit_bytes = limit});
  }

 private:
  void RunPlanned(ImagePlanOptions plan) {
    auto runner = ImageRunner::Create(model_, plan);
    if (!runner.ok() && runner.status().code() == Code::kLimitExceeded) {
      ++tally_.refused;
      plan.memory_limit_bytes = AmountIn(runner.status().message());
      runner = ImageRunner::Create(model_, plan);
    }
    ASSERT_TRUE(runner.ok()) << what_ << ": " << runner.status().message();
    const std::string how = StrCat(what_, ": ", ExecutorName(plan.executor), "\n",
                                   (*runner)->Describe(), Print((*runner)->graph()));
    const ImageResult result = RunImage(**runner, image_);
    ASSERT_TRUE(result.status.ok()) << how << ": " << result.status.message();
    for (size_t o = 0; o < whole_.size(); ++o) {
      const auto &got = result.outputs[o].bytes, &expected = whole_[o].bytes;
      ASSERT_TRUE(got.size() == expected.size() &&
                  std::memcmp(got.data(), expected.data(), got.size()) == 0)
          << how << "output " << o << FirstDifference(got, expected);
    }
    EXPECT_LE(result.report.peak_bytes, (*runner)->plan().peak_bytes) << how;
    EXPECT_LE((*runner)->plan().peak_bytes, plan.memory_limit_bytes) << how;
    for (const auto& phase : result.report.phases) {
      if (phase.executor == ImageExecutor::kStream) CheckRows(phase, how);
    }
    ++tally_.runs;
    tally_.phases += static_cast<int64_t>(result.report.phases.size()) - 1;
  }

  static void CheckRows(const ImageReport::Phase& phase, const std::string& how) {
    for (const RowCount& count : phase.values) {
      EXPECT_TRUE(count.recomputed == 0 && count.computed <= count.rows)
          << how << "value " << IndexOf(count.value) << " has " << count.rows << " rows, computed "
          << count.computed << ", again " << count.recomputed;
    }
  }

  const uint32_t seed_;
  const std::string what_;
  const ConstTensor image_;
  Tally& tally_;
  std::shared_ptr<const CompiledModel> model_;
  std::vector<ConstTensor> whole_;
};

int FailedParts() {
  const auto& result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
  return result.total_part_count();
}

TEST(RandomImages, StreamsAndTilesEqualTheWhole) {
  constexpr int kMaxFailures = 20;
  const int64_t count = Variable("MSRT_IMAGE_CONFIGURATIONS", 80);
  auto seed = static_cast<uint32_t>(Variable("MSRT_IMAGE_SEED", 1));
  Tally tally;
  for (; tally.configurations < count && FailedParts() < kMaxFailures; ++seed) {
    const auto net = DrawImageNet(seed);
    if (!net) continue;
    for (const bool reference : {true, false}) Checks(seed, *net, reference, &tally).Run();
    ++tally.configurations;
  }
  EXPECT_GT(tally.phases, 0) << "no network had statistics of the whole image";
  EXPECT_GT(tally.refused, 0) << "no limit was too small";
  printf("%lld configurations, %lld runs, %lld extra phases, %lld limits refused, next seed %u\n",
         static_cast<long long>(tally.configurations), static_cast<long long>(tally.runs),
         static_cast<long long>(tally.phases), static_cast<long long>(tally.refused), seed);
}

}  // namespace
}  // namespace msrt::testing
