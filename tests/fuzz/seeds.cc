#include "tests/fuzz/seeds.h"

#include "core/model/sample_models.h"
#include "core/model/write.h"
#include "tests/fuzz/random_flow.h"
#include "tests/fuzz/random_graph.h"

namespace msrt::testing {

std::vector<std::vector<std::byte>> FuzzSeeds() {
  std::vector<std::vector<std::byte>> seeds;
  const auto add = [&](const Module& module, const ModelExtras* extras = nullptr) {
    auto file = SerializeModel(module, {.extras = extras});
    MSRT_CHECK(file.ok());
    seeds.push_back(*std::move(file));
  };
  const ModelExtras extras = EverythingExtras();
  add(EverythingModule(), &extras);
  add(EverythingModule());
  add(KnownOpsModule());
  add(ChainModule(4));
  // Enough that every op is in one of them, and every kind of control flow in several.
  for (uint64_t seed = 1; seed <= 100; ++seed) add(MakeRandomGraph(seed).module);
  for (uint64_t seed = 1; seed <= 40; ++seed) add(MakeRandomFlow(seed).module);
  return seeds;
}

}  // namespace msrt::testing
