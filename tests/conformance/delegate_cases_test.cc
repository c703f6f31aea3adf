// Every op row through the whole pipeline (validate, place, bind, run) on every built-in delegate
// that accepts it: with the declared dims, and with all dims unknown.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "ops/registry.h"
#include "tests/conformance/case_module.h"
#include "tests/conformance/pipeline.h"

namespace msrt::testing {
namespace {

// Fast kernels round differently from loops in double: they must be within 1e-5 of the largest
// element of the result.
double ToleranceFor(const ConstTensor& expected) {
  if (expected.dtype != DType::kF32) return 0;
  double most = 0;
  for (float v : expected.As<float>()) {
    if (std::isfinite(v)) most = std::max(most, std::abs(static_cast<double>(v)));
  }
  return 1e-5 * most;
}

class DelegateCases : public ::testing::TestWithParam<std::tuple<size_t, std::string, bool>> {};

std::map<std::string, std::pair<int, int>>& Taken() {  // delegate -> rows accepted, rows refused
  static std::map<std::string, std::pair<int, int>> taken;
  return taken;
}

TEST_P(DelegateCases, AgreeWithOracle) {
  const auto& [index, delegate, open_dims] = GetParam();
  const OpCase& c = AllOpCases()[index];
  const CaseModule m = ModuleOf(c, open_dims);
  // Passes are off: they would fold the node or replace it.
  const auto got = RunModule(m.module, m.inputs, {delegate}, {"all"});
  if (!got.ok() && got.status().code() == Code::kUnsupported && delegate != "reference") {
    ++Taken()[delegate].second;
    return;
  }
  ASSERT_TRUE(got.ok()) << got.status().message();
  ++Taken()[delegate].first;
  for (size_t i = 0; i < m.outputs.size(); ++i) {
    const ConstTensor& expected = *c.expected[m.outputs[i]];
    const double atol = delegate == "reference" ? c.atol : std::max(c.atol, ToleranceFor(expected));
    EXPECT_EQ(Difference((*got)[i], expected, c.rtol, atol), "")
        << "output " << m.outputs[i] << ", oracle " << c.oracle;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DelegateCases,
                         ::testing::Combine(::testing::Range(size_t{0}, AllOpCases().size()),
                                            ::testing::ValuesIn(DelegateNames()),
                                            ::testing::Bool()),
                         [](const auto& row) {
                           return StrCat(AllOpCases()[std::get<0>(row.param)].name, "_",
                                         std::get<1>(row.param),
                                         std::get<2>(row.param) ? "_open" : "");
                         });

// Prints how many rows each delegate accepted, which shows one that refuses everything.
class Summary : public ::testing::Environment {
  void TearDown() override {
    for (const auto& [delegate, rows] : Taken())
      std::cout << delegate << ": " << rows.first << " rows taken, " << rows.second << " refused\n";
  }
};
const auto* const kSummary = ::testing::AddGlobalTestEnvironment(new Summary);

}  // namespace
}  // namespace msrt::testing
