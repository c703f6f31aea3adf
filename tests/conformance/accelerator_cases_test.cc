// Every op row on the emulated accelerator, with and without delays. Its arithmetic is that of the
// reference delegate, so results must be the same bit for bit; memory, streams and copies differ.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/conformance/case_module.h"
#include "tests/conformance/load_accelerator.h"

namespace msrt::testing {
namespace {

struct Setup {
  const char* name;
  const char* options;
};

const Setup kSetups[] = {
    {"alone", ""},
    {"delayed", "delay_us=30,seed=7"},
};

class AcceleratorCases : public ::testing::TestWithParam<std::tuple<size_t, bool>> {};

// One device for a whole setup, as in an application.
std::shared_ptr<Environment> EnvironmentOf(size_t setup) {
  static const std::vector<std::shared_ptr<Environment>> environments = [] {
    std::vector<std::shared_ptr<Environment>> list;
    for (const Setup& s : kSetups) list.push_back(AcceleratedEnvironment(s.options));
    return list;
  }();
  return environments[setup];
}

Result<std::vector<ConstTensor>> RunOn(const CaseModule& m, size_t setup, const char* delegate) {
  CompileOptions options;
  options.place.delegates = {delegate};
  options.place.strict = true;
  options.passes.disabled = {"all"};
  MSRT_ASSIGN_OR_RETURN(auto model, CompileModule(EnvironmentOf(setup), m.module, options));
  MSRT_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(model), 0, {}));
  return RunSession(*session, m.inputs);
}

TEST_P(AcceleratorCases, SameBitsAsReference) {
  const auto& [index, open_dims] = GetParam();
  const CaseModule m = ModuleOf(AllOpCases()[index], open_dims);
  const auto expected = RunOn(m, 0, "reference");
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  // Delays do not depend on the declared dims.
  for (size_t setup = 0; setup < (open_dims ? 1 : std::size(kSetups)); ++setup) {
    const auto got = RunOn(m, setup, "accelerator");
    ASSERT_TRUE(got.ok()) << kSetups[setup].name << ": " << got.status().message();
    for (size_t i = 0; i < expected->size(); ++i)
      EXPECT_EQ(Difference((*got)[i], (*expected)[i], 0, 0), "") << kSetups[setup].name;
  }
  EXPECT_EQ(NewMisuses(), "");
}

INSTANTIATE_TEST_SUITE_P(All, AcceleratorCases,
                         ::testing::Combine(::testing::Range(size_t{0}, AllOpCases().size()),
                                            ::testing::Bool()),
                         [](const auto& row) {
                           return StrCat(AllOpCases()[std::get<0>(row.param)].name,
                                         std::get<1>(row.param) ? "_open" : "");
                         });

}  // namespace
}  // namespace msrt::testing
