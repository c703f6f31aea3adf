// Files that MindSpore exported, through the importer and the runtime, against the results of
// MindSpore. Each folder of tests/data/mindir is a case: model.mindir, input_N.npy, output_N.npy; a
// model with state also has again_N.npy, the outputs of a second run.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ops/validate.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/mindir/import.h"
#include "tools/tensors/compare.h"
#include "tools/tensors/npy.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

// Relative to the range of an output. Long sums of a network may be added in another order.
constexpr double kSmall = 1e-5, kNetwork = 1e-4, kHalf = 1e-3;
constexpr std::string_view kNetworks[] = {"encoder", "lenet", "resmini"};

std::vector<std::string> Cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(MSRT_MINDIR_DATA))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<ConstTensor> ReadAll(const fs::path& folder, const std::string& stem) {
  std::vector<ConstTensor> tensors;
  for (;;) {
    const fs::path path = folder / StrCat(stem, "_", tensors.size(), ".npy");
    if (!fs::exists(path)) return tensors;
    auto tensor = ReadNpy(path.string());
    if (!tensor.ok()) {
      ADD_FAILURE() << tensor.status().message();
      return tensors;
    }
    tensors.push_back(*std::move(tensor));
  }
}

void ExpectClose(const std::vector<ConstTensor>& got, const std::vector<ConstTensor>& want,
                 double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dtype, want[i].dtype) << "output " << i;
    const auto deviation = Compare(ViewOf(got[i]), ViewOf(want[i]));
    ASSERT_TRUE(deviation.ok()) << deviation.status().message();
    const double most = want[i].dtype == DType::kF16 ? kHalf
                        : IsFloat(want[i].dtype)     ? tolerance
                                                     : 0.0;
    EXPECT_LE(deviation->relative, most) << "output " << i << ", element " << deviation->element;
  }
}

class MindIr : public ::testing::TestWithParam<std::string> {};

TEST_P(MindIr, ResultsMatchMindSpore) {
  const fs::path folder = fs::path(MSRT_MINDIR_DATA) / GetParam();
  auto imported = mindir_import::ImportFile((folder / "model.mindir").string(), {}, DefaultIo());
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(imported->problems.empty()) << imported->problems.Text();
  const Status valid = Validate(&imported->module);
  ASSERT_TRUE(valid.ok()) << valid.message() << "\n" << Print(imported->module);
  const std::vector<ConstTensor> inputs = ReadAll(folder, "input"),
                                 want = ReadAll(folder, "output"), again = ReadAll(folder, "again");
  ASSERT_FALSE(want.empty());
  const bool network =
      std::find(std::begin(kNetworks), std::end(kNetworks), GetParam()) != std::end(kNetworks);
  for (const bool passes : {true, false}) {
    SCOPED_TRACE(passes ? "with passes" : "as imported");
    CompileOptions options;
    options.passes.validate = true;
    if (!passes) options.passes.disabled = {"all"};
    auto model = CompileModule(TestEnvironment(), imported->module, options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto session = Session::Create(*model, 0, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (const auto* expected : {&want, &again}) {
      if (expected->empty()) continue;
      auto got = RunSession(**session, inputs);
      ASSERT_TRUE(got.ok()) << got.status().message();
      ExpectClose(*got, *expected, network ? kNetwork : kSmall);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, MindIr, ::testing::ValuesIn(Cases()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace msrt::testing
