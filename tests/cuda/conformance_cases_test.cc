// Every op row on the cuda delegate, through the emulated driver, against the expected results.
// What the delegate refuses is listed with the reasons at the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "tests/conformance/case_module.h"
#include "tests/conformance/pipeline.h"
#include "tests/cuda/cuda_environment.h"

namespace msrt::testing {
namespace {

// Kernels in float round differently from loops in double: they must be within 1e-5 of the largest
// element of the result.
double ToleranceFor(const ConstTensor& expected) {
  if (expected.dtype != DType::kF32) return 0;
  double most = 0;
  for (float v : expected.As<float>()) {
    if (std::isfinite(v)) most = std::max(most, std::abs(static_cast<double>(v)));
  }
  return 1e-5 * most;
}

struct Rows {
  int taken = 0, refused = 0;
  std::set<std::string> reasons;
};
std::map<std::string, Rows>& RowsByOp() {
  static std::map<std::string, Rows> rows;
  return rows;
}

// One emulation for all rows, as in an application.
EmulatedEnvironment*& TheEmulation() {
  static EmulatedEnvironment* emulation = nullptr;
  return emulation;
}

Result<std::vector<ConstTensor>> RunOnCuda(const CaseModule& m) {
  CompileOptions options;
  options.place.delegates = {"cuda"};
  options.place.strict = true;
  options.passes.disabled = {"all"};
  MSRT_ASSIGN_OR_RETURN(auto model,
                        CompileModule(TheEmulation()->environment(), m.module, options));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(model), 0, {}));
  return RunSession(*session, m.inputs);
}

class CudaCases : public ::testing::TestWithParam<std::tuple<size_t, bool>> {};

TEST_P(CudaCases, AgreeWithOracle) {
  const auto& [index, open_dims] = GetParam();
  const OpCase& c = AllOpCases()[index];
  const CaseModule m = ModuleOf(c, open_dims);
  const auto got = RunOnCuda(m);
  Rows& rows = RowsByOp()[StrCat(c.domain, c.domain.empty() ? "" : ".", c.op)];
  if (!got.ok() && got.status().code() == Code::kUnsupported) {
    ++rows.refused;
    rows.reasons.insert(got.status().message());
    return;
  }
  ASSERT_TRUE(got.ok()) << got.status().message();
  ++rows.taken;
  for (size_t i = 0; i < m.outputs.size(); ++i) {
    const ConstTensor& expected = *c.expected[m.outputs[i]];
    const double atol = std::max(c.atol, ToleranceFor(expected));
    EXPECT_EQ(Difference((*got)[i], expected, c.rtol, atol), "")
        << "output " << m.outputs[i] << ", oracle " << c.oracle;
  }
  EXPECT_EQ(TheEmulation()->cuda().misuse(), "");
}

INSTANTIATE_TEST_SUITE_P(All, CudaCases,
                         ::testing::Combine(::testing::Range(size_t{0}, AllOpCases().size()),
                                            ::testing::Bool()),
                         [](const auto& row) {
                           return StrCat(AllOpCases()[std::get<0>(row.param)].name,
                                         std::get<1>(row.param) ? "_open" : "");
                         });

class Emulation : public ::testing::Environment {
  void SetUp() override {
    // Open dims are guessed large, so plans ask for more than the rows use.
    TheEmulation() = new EmulatedEnvironment({.memory_bytes = size_t{64} << 30});
  }
  void TearDown() override {
    int taken = 0, refused = 0;
    for (const auto& [op, rows] : RowsByOp()) {
      taken += rows.taken, refused += rows.refused;
      if (rows.refused == 0) continue;
      std::cout << op << ": " << rows.taken << " rows taken, " << rows.refused << " refused: ";
      for (const std::string& reason : rows.reasons) std::cout << "\n    " << reason;
      std::cout << "\n";
    }
    std::cout << "cuda: " << taken << " rows taken, " << refused << " refused\n";
    EmulatedEnvironment* emulation = TheEmulation();
    // The GPUs go before the emulation is asked what is left.
    delete emulation;
  }
};
const auto* const kEmulation = ::testing::AddGlobalTestEnvironment(new Emulation);

}  // namespace
}  // namespace msrt::testing
