// Outputs whose sizes depend on data, followed by ops that depend on those sizes: one session, new
// data in each run, on the host and on a device.
#include <algorithm>
#include <set>

#include "tests/conformance/load_accelerator.h"
#include "tests/conformance/small_graph.h"

namespace msrt::testing {
namespace {

constexpr int64_t kElements = 1000;  // more than a binding reads by itself

// Returns the nonzero values and the distinct ones among them: NonZero, then Unique of its result.
Module TwoSizesInARow() {
  SmallGraph g;
  const ValueId x = g.Input("x", DType::kF32, {kUnknownDim});
  const ValueId places = g.Add("NonZero", "places", {x});
  const ValueId rows = g.Add("Transpose", "rows", {places}, {{"perm", std::vector<int64_t>{1, 0}}});
  const ValueId values = g.Add("GatherND", "values", {x, rows});
  const ValueId doubled = g.Add("Add", "doubled", {values, values});
  const ValueId distinct = g.Add("Unique", "distinct", {doubled});
  g.graph.outputs = {doubled, distinct};
  return std::move(g.module);
}

// Whole numbers from 0 to `most`: a larger `most` means fewer zeros.
ConstTensor WholeNumbers(uint32_t seed, uint32_t most) {
  std::mt19937 random(seed);
  std::vector<float> values(kElements);
  for (float& v : values) v = static_cast<float>(random() % (most + 1));
  return Floats({kElements}, values);
}

std::vector<ConstTensor> Expected(const ConstTensor& x) {
  std::vector<float> doubled;
  for (float v : x.As<float>()) {
    if (v != 0) doubled.push_back(2 * v);
  }
  const std::set<float> set(doubled.begin(), doubled.end());
  const std::vector<float> distinct(set.begin(), set.end());
  return {Floats({std::ssize(doubled)}, doubled), Floats({std::ssize(distinct)}, distinct)};
}

void RunOneSession(std::shared_ptr<const Environment> environment, const char* delegate) {
  CompileOptions options;
  options.place.delegates = {delegate};
  options.place.strict = true;
  auto model = CompileModule(environment, TwoSizesInARow(), options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  auto session = Session::Create(*std::move(model), 0, {});
  ASSERT_TRUE(session.ok());
  for (const uint32_t most : {1u, 5u, 40u, 0u, 3u}) {
    const ConstTensor x = WholeNumbers(most + 1, most);
    const auto got = RunSession(**session, {x});
    ASSERT_TRUE(got.ok()) << got.status().message();
    ExpectSameBits(*got, Expected(x), StrCat("numbers up to ", most));
  }
}

TEST(DataSizes, EachRunHasItsOwnSizes) { RunOneSession(TestEnvironment(), "reference"); }

TEST(DataSizes, DataOnADeviceDeterminesSizes) {
  RunOneSession(AcceleratedEnvironment(""), "accelerator");
  EXPECT_EQ(NewMisuses(), "");
}

TEST(DataSizes, SmallConstantsDetermineSizesAtCompileTime) {
  SmallGraph g;
  const ValueId x = g.graph.AddConstant("x", Floats({2, 3}, {0, 1, 0, 2, 0, 3}));
  EXPECT_EQ(StrCat(g.graph.value(g.Add("NonZero", "places", {x})).type), "i64[2, 3]");
  EXPECT_EQ(StrCat(g.graph.value(g.Add("Unique", "distinct", {x})).type), "f32[4]");
  const ValueId large = g.graph.AddConstant("large", WholeNumbers(1, 1));
  EXPECT_EQ(StrCat(g.graph.value(g.Add("NonZero", "later", {large})).type), "i64[1, ?]");
}

// The run reports a size that only the data makes wrong, and names the input.
TEST(DataSizes, BadLimitsInDataAreRefused) {
  SmallGraph g;
  const ValueId boxes = g.Input("boxes", DType::kF32, {1, 2, 4}),
                scores = g.Input("scores", DType::kF32, {1, 1, 2});
  const ValueId most = g.Input("most", DType::kI64, {1}),
                overlap = g.Input("overlap", DType::kF32, {1});
  g.graph.outputs = {g.Add("NonMaxSuppression", "suppress", {boxes, scores, most, overlap})};
  const int64_t three = 3;
  const auto got =
      RunModule(g.module, {Floats({1, 2, 4}, {0, 0, 1, 1, 2, 2, 3, 3}), Floats({1, 1, 2}, {1, 2}),
                           ConstTensor::Int64s({&three, 1}), Floats({1}, {1.5f})});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
  EXPECT_NE(got.status().message().find("iou_threshold = 1.5"), std::string::npos)
      << got.status().message();
  EXPECT_NE(got.status().message().find("suppress"), std::string::npos) << got.status().message();
}

}  // namespace
}  // namespace msrt::testing
