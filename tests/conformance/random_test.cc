// Distributions of the random ops: moments and chi-square at fixed seeds, over the elements of a
// tensor, over steps and over streams. The bounds are five standard deviations of the statistic.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/registry.h"
#include "tests/conformance/case_node.h"

namespace msrt::testing {
namespace {

constexpr int64_t kCount = 40'000;

std::vector<double> Draw(std::string_view op, AttrList attrs, std::vector<ConstTensor> inputs = {},
                         std::string_view domain = "") {
  CaseNode node;
  node.def = FindOp(domain, op);
  node.attrs = std::move(attrs);
  for (ConstTensor& t : inputs) {
    node.present.push_back(true);
    node.input_types.push_back(t.type());
    node.inputs.push_back(std::move(t));
  }
  node.output_types.resize(1);
  EXPECT_TRUE(node.Infer().ok());
  const auto outputs = node.Run();
  EXPECT_TRUE(outputs.ok());
  std::vector<double> values;
  const ConstTensor& out = (*outputs)[0];
  for (int64_t i = 0; i < out.dims.elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    values.push_back(out.dtype == DType::kI64   ? static_cast<double>(out.As<int64_t>()[at])
                     : out.dtype == DType::kF32 ? static_cast<double>(out.As<float>()[at])
                                                : out.As<double>()[at]);
  }
  return values;
}

AttrList Shaped(AttrList attrs = {}) {
  attrs.Set("shape", std::vector<int64_t>{kCount});
  attrs.Set("dtype", DType::kF64);
  return attrs;
}

ConstTensor Step(int64_t value) {
  return ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1));
}

double MeanOf(const std::vector<double>& values, int power = 1) {
  double sum = 0;
  for (double v : values) sum += std::pow(v, power);
  return sum / static_cast<double>(values.size());
}

// Expects `bins` equally likely bins of [0, 1) to be filled alike.
void ExpectUniform(const std::vector<double>& values, int bins = 64) {
  std::vector<double> counts(static_cast<size_t>(bins));
  for (double v : values) {
    ASSERT_TRUE(v >= 0 && v < 1) << v;
    ++counts[static_cast<size_t>(v * bins)];
  }
  const double expected = static_cast<double>(values.size()) / bins;
  double chi = 0;
  for (double c : counts) chi += (c - expected) * (c - expected) / expected;
  EXPECT_LT(std::abs(chi - (bins - 1)), 5 * std::sqrt(2.0 * (bins - 1))) << chi;
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = MeanOf(a), mean_b = MeanOf(b);
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) product += (a[i] - mean_a) * (b[i] - mean_b);
  return product / static_cast<double>(a.size()) /
         std::sqrt((MeanOf(a, 2) - mean_a * mean_a) * (MeanOf(b, 2) - mean_b * mean_b));
}

TEST(RandomOps, UniformNumbersAreUniform) {
  for (const AttrList& attrs :
       {AttrList{}, AttrList{{"seed", 3.0}}, AttrList{{"stream", int64_t{9}}}})
    ExpectUniform(Draw("RandomUniform", Shaped(attrs)));
}

TEST(RandomOps, UniformOverStepsAndStreams) {
  std::vector<double> over_steps, over_streams;
  const AttrList one{{"shape", std::vector<int64_t>{1}}, {"dtype", DType::kF64}};
  for (int64_t i = 0; i < 4000; ++i) {
    AttrList in_stream = one;
    in_stream.Set("stream", i);
    over_steps.push_back(Draw("RandomUniform", one, {Step(i)})[0]);
    over_streams.push_back(Draw("RandomUniform", in_stream, {Step(1)})[0]);
  }
  ExpectUniform(over_steps, 16);
  ExpectUniform(over_streams, 16);
}

TEST(RandomOps, DerivedStepsAreUniform) {
  std::vector<double> derived;
  for (int64_t i = 0; i < 4000; ++i) {
    const double step = Draw("DeriveStep", {{"stream", i % 7}}, {Step(i / 7)}, "msrt")[0];
    derived.push_back(step / 0x1p62);
  }
  ExpectUniform(derived, 16);
}

TEST(RandomOps, NormalNumbersHaveTheirMoments) {
  const std::vector<double> x = Draw("RandomNormal", Shaped({{"seed", 5.0}}));
  const double n = static_cast<double>(kCount);
  EXPECT_LT(std::abs(MeanOf(x)), 5 / std::sqrt(n));
  EXPECT_LT(std::abs(MeanOf(x, 2) - 1), 5 * std::sqrt(2 / n));
  EXPECT_LT(std::abs(MeanOf(x, 3)), 5 * std::sqrt(15 / n));
  EXPECT_LT(std::abs(MeanOf(x, 4) - 3), 5 * std::sqrt(96 / n));
  std::vector<double> uniform;  // by its distribution function
  for (double v : x) uniform.push_back(0.5 * std::erfc(-v / std::sqrt(2.0)));
  ExpectUniform(uniform);
  const std::vector<double> moved =
      Draw("RandomNormal", Shaped({{"seed", 5.0}, {"mean", 3.0}, {"scale", 0.5}}));
  for (size_t i = 0; i < x.size(); i += 97) EXPECT_DOUBLE_EQ(moved[i], 3 + 0.5 * x[i]);
}

TEST(RandomOps, DrawsAreIndependent) {
  const std::vector<double> x = Draw("RandomNormal", Shaped());
  const double bound = 5 / std::sqrt(static_cast<double>(kCount));
  EXPECT_LT(std::abs(Correlation(x, Draw("RandomNormal", Shaped(), {Step(1)}))), bound);
  EXPECT_LT(std::abs(Correlation(x, Draw("RandomNormal", Shaped({{"stream", int64_t{1}}})))),
            bound);
  EXPECT_LT(std::abs(Correlation(x, Draw("RandomNormal", Shaped({{"seed", 0.0}})))), bound);
  const std::vector<double> next(x.begin() + 1, x.end()), before(x.begin(), x.end() - 1);
  EXPECT_LT(std::abs(Correlation(before, next)), bound);
}

TEST(RandomOps, DropoutKeepsTheMean) {
  const std::vector<float> ones(kCount, 1);
  for (const double ratio : {0.1, 0.5, 0.9}) {
    const std::vector<double> y = Draw("Dropout", {{"ratio", ratio}, {"training", int64_t{1}}},
                                       {ConstTensor::Floats({kCount}, ones), Step(4)});
    const double deviation = std::sqrt(ratio / (1 - ratio) / static_cast<double>(kCount));
    EXPECT_LT(std::abs(MeanOf(y) - 1), 5 * deviation) << ratio;
  }
}

}  // namespace
}  // namespace msrt::testing
