// .msrt -> .mindir -> .msrt keeps the bits of all results: for the files that MindSpore exported,
// and for every op case that MindIR can express.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "ops/validate.h"
#include "tests/conformance/case_module.h"
#include "tests/conformance/mindir/round_trip.h"
#include "tests/conformance/pipeline.h"
#include "tools/msconvert/mindir/import.h"
#include "tools/tensors/compare.h"

namespace msrt::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(MSRT_MINDIR_DATA))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class MindIrFiles : public ::testing::TestWithParam<std::string> {};

TEST_P(MindIrFiles, SurviveARoundTrip) {
  const fs::path folder = fs::path(MSRT_MINDIR_DATA) / GetParam();
  auto imported = mindir_import::ImportFile((folder / "model.mindir").string(), {}, DefaultIo());
  ASSERT_TRUE(imported.ok() && imported->problems.empty());
  ASSERT_TRUE(Validate(&imported->module).ok());
  const auto inputs = ReadInputs(folder.string());
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  for (const bool passes : {true, false}) {
    SCOPED_TRACE(passes ? "with passes" : "as imported");
    Module module = imported->module;
    if (passes) {
      const Status optimized = OptimizeAsWritten(&module);
      ASSERT_TRUE(optimized.ok()) << optimized.message();
    }
    const auto back = ThroughMindIr(module, Notes::kKept);
    ASSERT_TRUE(back.ok()) << back.status().message();
    const auto difference = DifferenceOf(module, *back, *inputs, passes, 2);
    ASSERT_TRUE(difference.ok()) << difference.status().message();
    EXPECT_EQ(*difference, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, MindIrFiles, ::testing::ValuesIn(Files()),
                         [](const auto& file) { return file.param; });

// Cases in which MindSpore's primitive differs from the op.
constexpr std::string_view kOnlyNearly[] = {
    "AveragePool_empty_image",                  // windows over nothing but padding
    "AveragePool_windows_in_padding_only",      // the same: no elements to average
    "ConvTranspose_empty_image",                // its padding is that of an image
    "ConvTranspose_output_shape_beyond_cover",  // more output than the windows reach
    "GroupNormalization_empty_batch",      // a dim to be inferred, in a tensor without elements
    "Hardmax_empty_axis",                  // the maximum of no elements
    "LayerNormalization_far_from_zero",    // the variance of large numbers, in f32
    "MaxPool_empty_image",                 // windows over nothing but padding
    "Mod_special",                         // fmod of infinities
    "Pow_largest_exponent",                // an exponent that the base's type lacks
    "Resize_linear_hits_finite_elements",  // a product with a matrix: nothing times infinity
    "TopK_nan_smallest",                   // the order of NaNs
};

// Visits the cases of ops that can be exported, with the modules that are read back.
void ForEachOp(Notes notes,
               const std::function<void(const OpCase&, const CaseModule&, const Module&)>& visit) {
  for (const OpCase& c : AllOpCases()) {
    const bool nearly =
        std::find(std::begin(kOnlyNearly), std::end(kOnlyNearly), c.name) != std::end(kOnlyNearly);
    if (nearly && notes == Notes::kStripped) continue;
    CaseModule made = ModuleOf(c, false);
    ASSERT_TRUE(Validate(&made.module).ok()) << c.name;
    const auto back = ThroughMindIr(made.module, notes);
    const bool refused =
        !back.ok() && back.status().message().find(" is refused: ") != std::string::npos;
    EXPECT_TRUE(back.ok() || refused) << c.name << ": " << back.status().message();
    if (back.ok()) visit(c, made, *back);
  }
}

TEST(MindIrOps, SurviveARoundTrip) {
  size_t same = 0;
  ForEachOp(Notes::kKept, [&](const OpCase& c, const CaseModule& made, const Module& back) {
    const auto difference = DifferenceOf(made.module, back, made.inputs, false);
    EXPECT_TRUE(difference.ok()) << c.name << ": " << difference.status().message();
    EXPECT_EQ(difference.ok() ? *difference : "", "") << c.name;
    same += difference.ok() && difference->empty();
  });
  std::printf("%zu of %zu cases come back with the same bits, the others are refused\n", same,
              AllOpCases().size());
  EXPECT_GE(same, 2500u);
}

double ToleranceOf(DType dtype) {
  return dtype == DType::kF16 ? 4e-3 : dtype == DType::kBF16 ? 3e-2 : IsFloat(dtype) ? 1e-5 : 0.0;
}

// The primitives without msconvert's notes mean the same: to MindSpore, and to msconvert after
// MindSpore has rewritten the file.
TEST(MindIrOps, PrimitivesMeanTheSameWithoutNotes) {
  ForEachOp(Notes::kStripped, [](const OpCase& c, const CaseModule& made, const Module& back) {
    const auto got = RunModule(back, made.inputs, {}, {"all"});
    ASSERT_TRUE(got.ok()) << c.name << ": " << got.status().message();
    for (size_t i = 0; i < got->size(); ++i) {
      const ConstTensor& want = *c.expected[made.outputs[i]];
      EXPECT_EQ((*got)[i].dtype, want.dtype) << c.name << ", output " << i;
      const auto deviation = Compare(ViewOf((*got)[i]), ViewOf(want));
      ASSERT_TRUE(deviation.ok()) << c.name << ", output " << i << ": "
                                  << deviation.status().message();
      // Results computed in 16 bits may be returned in 32.
      const double computed = IsFloat(want.dtype) && !c.inputs.empty() && c.inputs[0].tensor
                                  ? ToleranceOf(c.inputs[0].tensor->dtype)
                                  : 0.0;
      EXPECT_LE(deviation->relative, std::max({ToleranceOf(want.dtype), computed, c.rtol}))
          << c.name << ", output " << i;
    }
  });
}

}  // namespace
}  // namespace msrt::testing
