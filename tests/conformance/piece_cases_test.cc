// Every op row by pieces, on every built-in delegate that accepts it: the kernel is compiled for
// the whole node and bound to pieces with localized attributes and strides.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>

#include "tests/conformance/piece_check.h"
#include "tests/conformance/pipeline.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

struct Backend {
  const char* name;
  const char* delegate;
  bool exact;        // only exact candidates
  double tolerance;  // of the largest element; 0: the same bits
};
const Backend kBackends[] = {
    {"reference", "reference", false, 0},
    {"cpu", "cpu", false, 1e-5},
    {"cpu_exact", "cpu", true, 0},
    {"onednn", "onednn", false, 1e-5},
};

// The last is there only if this build has oneDNN.
size_t BackendCount() {
  const auto environment = TestEnvironment();
  const bool has_onednn =
      std::any_of(environment->delegates.begin(), environment->delegates.end(),
                  [](const auto& delegate) { return delegate->name() == "onednn"; });
  return std::size(kBackends) - (has_onednn ? 0 : 1);
}

std::map<std::string, PieceTotals>& Totals() {
  static std::map<std::string, PieceTotals> totals;
  return totals;
}

class PieceCases : public ::testing::TestWithParam<std::tuple<size_t, size_t>> {};

TEST_P(PieceCases, EqualPartsOfTheWhole) {
  const auto& [row, number] = GetParam();
  const Backend& backend = kBackends[number];
  const CaseModule m = ModuleOf(AllOpCases()[row], /*open_dims=*/false);
  CompileOptions options;
  options.place.delegates = {backend.delegate};
  options.place.strict = true;
  options.place.exact = backend.exact;
  options.passes.disabled = {"all"};
  auto model = CompileModule(TestEnvironment(), m.module, options);
  if (model.status().code() == Code::kUnsupported) return;  // the delegate refuses the row
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*model, 0, {});
  const auto whole = RunSession(**session, m.inputs);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  CheckPieces(m, *model, *whole, backend.tolerance, 8, static_cast<uint32_t>(row),
              &Totals()[backend.name]);
}

INSTANTIATE_TEST_SUITE_P(All, PieceCases,
                         ::testing::Combine(::testing::Range(size_t{0}, AllOpCases().size()),
                                            ::testing::Range(size_t{0}, BackendCount())),
                         [](const auto& row) {
                           return StrCat(AllOpCases()[std::get<0>(row.param)].name, "_",
                                         kBackends[std::get<1>(row.param)].name);
                         });

// Convolutions with constant weights, of which a piece of some channels has a part: Winograd's,
// whose pieces are extended to its tiles, and direct ones.
TEST(LargerPieces, EqualPartsOfTheWhole) {
  using Ints = std::vector<int64_t>;
  struct Case {
    Dims x, w;
    AttrList attrs;
  };
  const Case cases[] = {
      {{1, 36, 30, 19}, {50, 36, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
      {{2, 33, 13, 26}, {47, 33, 3, 3}, {{"pads", Ints{0, 2, 1, 0}}}},
      {{1, 24, 17, 19}, {50, 12, 3, 3}, {{"group", int64_t{2}}, {"strides", Ints{2, 1}}}},
      {{1, 20, 11, 9}, {70, 20, 1, 1}, {}},
  };
  uint32_t seed = 1;
  for (const Case& given : cases) {
    OpCase c;
    c.name = c.op = "Conv";
    c.attrs = given.attrs;
    c.inputs.push_back({RandomFloats(given.x, seed), false});
    c.inputs.push_back({RandomFloats(given.w, seed + 1), true});
    c.inputs.push_back({RandomFloats({given.w[0]}, seed + 2), true});
    c.expected.push_back(RandomFloats({1}, 0));  // only its type counts
    const CaseModule m = ModuleOf(c, /*open_dims=*/false);
    CompileOptions options;
    options.place.delegates = {"cpu"};
    options.place.strict = options.place.exact = true;
    auto model = CompileModule(TestEnvironment(), m.module, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto session = Session::Create(*model, 0, {});
    const auto whole = RunSession(**session, m.inputs);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    PieceTotals totals;
    EXPECT_TRUE(CheckPieces(m, *model, *whole, 0, 40, seed++, &totals));
    EXPECT_EQ(totals.pieces, 40);
  }
}

class Summary : public ::testing::Environment {
  void TearDown() override {
    for (const auto& [name, t] : Totals()) {
      std::cout << name << ": " << t.rows << " rows, " << t.pieces << " pieces, " << t.strided
                << " kernels with strides, " << t.copies << " copies; " << t.bound
                << " kernels bound, " << t.reused << " reused\n";
    }
  }
};
const auto* const kSummary = ::testing::AddGlobalTestEnvironment(new Summary);

}  // namespace
}  // namespace msrt::testing
