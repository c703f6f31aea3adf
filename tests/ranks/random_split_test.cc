// Random networks on random grids of ranks have the bits of the unsplit run. By hand:
//   random_split_test --configurations=10000 --seed=1
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "tests/ranks/random_net.h"
#include "tests/ranks/rank_runs.h"

namespace msrt::testing {
namespace {

int64_t configurations = 60;
uint32_t first_seed = 1;

ConstTensor RandomImage(const Dims& dims, std::mt19937* random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(dims.elements()));
  for (float& v : values) v = normal(*random);
  return ConstTensor::Floats(dims, values);
}

// With the reference kernels and with all delegates.
void Check(uint32_t seed, const RandomNet& net, std::mt19937* random, ExchangeTotals* totals) {
  const std::vector<ConstTensor> inputs{RandomImage(net.image, random)};
  const SplitOptions split = DrawSplit(net.image, random);
  for (const bool reference : {true, false}) {
    CompileOptions options;
    options.place.exact = true;
    if (reference) options.place.delegates = {"reference"};
    EXPECT_EQ(CompareWithWhole(net.module, inputs, options, split, totals), "")
        << StrCat("seed ", seed, reference ? " reference" : " all delegates", ", image ", net.image,
                  ", ", Describe(split), ": ", net.text);
  }
}

TEST(RandomSplit, HasTheBitsOfTheWhole) {
  ExchangeTotals totals;
  int64_t done = 0;
  uint32_t seed = first_seed;
  for (; done < configurations && !HasFailure(); ++seed) {
    std::mt19937 random(seed);
    const auto net = DrawNet(/*max_batch=*/2, &random);
    if (!net) continue;
    Check(seed, *net, &random, &totals);
    if (++done % 500 != 0) continue;
    printf("%lld configurations\n", static_cast<long long>(done));
    std::fflush(stdout);
  }
  printf("%lld configurations, seeds %u to %u: %lld exchanges, %lld messages, %lld bytes\n",
         static_cast<long long>(done), first_seed, seed - 1,
         static_cast<long long>(totals.exchanges), static_cast<long long>(totals.messages_sent),
         static_cast<long long>(totals.bytes_sent));
  EXPECT_GT(totals.messages_sent, 0);
  EXPECT_EQ(totals.bytes_sent, totals.bytes_received);
}

}  // namespace
}  // namespace msrt::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const auto value = [&](std::string_view name) -> const char* {
      return arg.starts_with(name) ? argv[i] + name.size() : nullptr;
    };
    if (const char* text = value("--configurations=")) msrt::testing::configurations = atoll(text);
    if (const char* text = value("--seed="))
      msrt::testing::first_seed = static_cast<uint32_t>(atoll(text));
  }
  return RUN_ALL_TESTS();
}
