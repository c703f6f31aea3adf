// Every row of the tables, and valid files that are truncated at every byte or have flipped bits,
// through import and validation: each quickly gets a message that names the object and does not
// repeat the file.
#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "ops/validate.h"
#include "tests/hostile/bad_onnx.h"
#include "tools/msconvert/onnx/importer.h"

namespace msrt::testing {
namespace {

// Processor time, so that a busy machine does not matter: far above the need of a row, far below
// that of a bomb.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMaxSeconds = 100;
#else
constexpr double kMaxSeconds = 10;
#endif
constexpr size_t kMaxMessageBytes = 32 * 1024;

// Returns OK, or everything that blocks the import.
Status Convert(std::span<const std::byte> bytes) {
  MSRT_ASSIGN_OR_RETURN(onnx_import::ImportResult imported,
                        onnx_import::ImportBytes(bytes, "", {}, DefaultIo()));
  if (!imported.problems.empty()) return Unsupported(imported.problems.Text());
  return Validate(&imported.module);
}

class BadOnnxTest : public ::testing::TestWithParam<BadOnnx> {};

TEST_P(BadOnnxTest, IsRefusedWithTheObject) {
  const BadOnnx& row = GetParam();
  const std::vector<std::byte> bytes =
      row.graph != nullptr ? OnnxBytes(OnnxModel(row.graph, row.rest)) : row.make();
  const std::clock_t start = std::clock();
  const Status status = Convert(bytes);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMaxSeconds);
  EXPECT_EQ(status.ok(), row.fragment[0] == '\0') << status.message();
  EXPECT_NE(status.message().find(row.fragment), std::string::npos)
      << "'" << status.message() << "' lacks '" << row.fragment << "'";
  EXPECT_NE(status.code(), Code::kInternal);
  EXPECT_LT(status.message().size(), kMaxMessageBytes);
}

std::string NameOf(const ::testing::TestParamInfo<BadOnnx>& row) { return row.param.name; }
INSTANTIATE_TEST_SUITE_P(Structure, BadOnnxTest,
                         ::testing::ValuesIn(BadStructure().begin(), BadStructure().end()), NameOf);
INSTANTIATE_TEST_SUITE_P(Control, BadOnnxTest,
                         ::testing::ValuesIn(BadControl().begin(), BadControl().end()), NameOf);
INSTANTIATE_TEST_SUITE_P(Bombs, BadOnnxTest,
                         ::testing::ValuesIn(BadBombs().begin(), BadBombs().end()), NameOf);

class GoodOnnxTest : public ::testing::TestWithParam<SampleText> {};

TEST_P(GoodOnnxTest, IsImported) {
  const Status status = Convert(OnnxBytes(OnnxModel(GetParam().graph, GetParam().rest)));
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(GoodOnnxTest, IsRefusedWhenTruncated) {
  const std::vector<std::byte> bytes = OnnxBytes(OnnxModel(GetParam().graph, GetParam().rest));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const Status status = Convert(std::span(bytes).first(length));
    EXPECT_FALSE(status.ok()) << "the first " << length << " of " << bytes.size() << " bytes";
    EXPECT_FALSE(status.message().empty());
  }
}

TEST_P(GoodOnnxTest, FlippedBitsGiveAnErrorOrAModel) {
  const std::vector<std::byte> good = OnnxBytes(OnnxModel(GetParam().graph, GetParam().rest));
  std::mt19937_64 random(1);
  for (int run = 0; run < 2000; ++run) {
    std::vector<std::byte> bytes = good;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips)
      bytes[random() % bytes.size()] ^= std::byte{1} << (random() % 8);
    const Status status = Convert(bytes);
    EXPECT_NE(status.code(), Code::kInternal) << status.message();
    EXPECT_TRUE(status.ok() || !status.message().empty());
  }
}

const std::vector<SampleText> kSamples = SampleTexts();
INSTANTIATE_TEST_SUITE_P(Samples, GoodOnnxTest, ::testing::ValuesIn(kSamples),
                         [](const auto& sample) { return std::string(sample.param.name); });

}  // namespace
}  // namespace msrt::testing
