// .msrt -> .mindir -> .msrt gives the same bits: for the files that MindSpore exported, and for every op case that MindIR can hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/passes/pass.h"
#include "delegates/builtin.h"
#include "ops/validate.h"
#include "tests/conformance/case_module.h"
#include "tests/conformance/mindir/round_trip.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/mindir/import.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(MSRT_MINDIR_DATA)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class MindIrFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(MindIrFiles, ComeBackTheSame) {
  const fs::path folder = fs::path(MSRT_MINDIR_DATA) / GetParam();
  auto imported = mindir_import::ImportFile((folder / "model.mindir").string(), {}, DefaultIo());
  ASSERT_TRUE(imported.ok() && imported->problems.empty());
  ASSERT_TRUE(Validate(&imported->module).ok());
  const auto inputs = ReadInputs(folder.string());
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  for (const bool passes : {true, false}) {
    SCOPED_TRACE(passes ? "with passes" : "as imported");
    Module module = imported->module;
    if (passes) {  // as msconvert writes it
      const PassContext context{.evaluator = &BuiltinEvaluator()};
      const auto optimized = RunPasses(context, {.disabled = {"widen_weights"}, .validate = true}, &module);
      ASSERT_TRUE(optimized.ok()) << optimized.status().message();
    }
    const auto back = ThroughMindIr(module, Notes::kKept);
    ASSERT_TRUE(back.ok()) << back.status().message();
    const auto difference = DifferenceOf(module, *back, *inputs, passes, 2);
    ASSERT_TRUE(difference.ok()) << difference.status().message();
    EXPECT_EQ(*difference, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, MindIrFiles, ::testing::ValuesIn(Files()), [](const auto& file) { return file.param; });

// What the exporter refuses is counted, so that it cannot grow unseen.
TEST(MindIrOps, ComeBackTheSame) {
  size_t refused = 0, same = 0;
  for (const OpCase& c : AllOpCases()) {
    CaseModule made = ModuleOf(c, false);
    ASSERT_TRUE(Validate(&made.module).ok()) << c.name;
    const auto back = ThroughMindIr(made.module, Notes::kKept);
    if (!back.ok()) {
      ++refused;
      std::printf("[ refused  ] %s: %s\n", c.name.c_str(), back.status().message().c_str());
      continue;
    }
    const auto difference = DifferenceOf(made.module, *back, made.inputs, false);
    ASSERT_TRUE(difference.ok()) << c.name << ": " << difference.status().message();
    EXPECT_EQ(*difference, "") << c.name;
    ++same;
  }
  std::printf("%zu the same, %zu refused\n", same, refused);
}

// The primitives alone mean the same too: within the tolerance of the case, which is against an oracle.
TEST(MindIrOps, PrimitivesAloneMeanTheSame) {
  for (const OpCase& c : AllOpCases()) {
    CaseModule made = ModuleOf(c, false);
    ASSERT_TRUE(Validate(&made.module).ok()) << c.name;
    if (!ThroughMindIr(made.module, Notes::kKept).ok()) continue;
    const auto back = ThroughMindIr(made.module, Notes::kStripped);
    if (!back.ok()) {
      ADD_FAILURE() << c.name << ": " << back.status().message();
      continue;
    }
    const auto got = RunModule(*back, made.inputs, {}, {"all"});
    if (!got.ok()) {
      ADD_FAILURE() << c.name << ": " << got.status().message();
      continue;
    }
    for (size_t i = 0; i < got->size(); ++i) {
      const ConstTensor& want = *c.expected[made.outputs[i]];
      EXPECT_EQ(Difference((*got)[i], want, c.rtol, c.atol), "") << c.name << ", output " << i;
    }
  }
}

}  // namespace
}  // namespace msrt::testing
