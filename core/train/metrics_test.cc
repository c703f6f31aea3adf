#include "core/train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace msrt::testing {
namespace {

// Labels 0 0 0 1 1 2, classified as 0 0 1 1 2 2; class 3 does not occur.
ConfusionMatrix Example() {
  ConfusionMatrix matrix(4);
  const int64_t labels[] = {0, 0, 0, 1, 1, 2}, predicted[] = {0, 0, 1, 1, 2, 2};
  for (size_t i = 0; i < 6; ++i) matrix.Add(labels[i], predicted[i]);
  return matrix;
}

TEST(Metrics, AccuracyCountsTheDiagonal) {
  EXPECT_DOUBLE_EQ(Accuracy(Example()), 4.0 / 6);
  EXPECT_TRUE(std::isnan(Accuracy(ConfusionMatrix(3))));
}

TEST(Metrics, ClassesAreMeasuredOneByOne) {
  const std::vector<double> recall = ClassAccuracies(Example());
  EXPECT_DOUBLE_EQ(recall[0], 2.0 / 3);
  EXPECT_DOUBLE_EQ(recall[1], 0.5);
  EXPECT_DOUBLE_EQ(recall[2], 1);
  EXPECT_TRUE(std::isnan(recall[3]));
  const std::vector<double> precision = ClassPrecisions(Example());
  EXPECT_DOUBLE_EQ(precision[0], 1);
  EXPECT_DOUBLE_EQ(precision[1], 0.5);
  EXPECT_DOUBLE_EQ(precision[2], 0.5);
}

TEST(Metrics, IntersectionOverUnionLeavesOutAbsentClasses) {
  const std::vector<double> iou = IntersectionOverUnion(Example());
  EXPECT_DOUBLE_EQ(iou[0], 2.0 / 3);
  EXPECT_DOUBLE_EQ(iou[1], 1.0 / 3);
  EXPECT_DOUBLE_EQ(iou[2], 0.5);
  EXPECT_TRUE(std::isnan(iou[3]));
  EXPECT_DOUBLE_EQ(MeanOfKnown(iou), 0.5);
  EXPECT_TRUE(std::isnan(MeanOfKnown({})));
}

TEST(Metrics, MatricesAddUpAndIgnoreOtherLabels) {
  ConfusionMatrix matrix = Example();
  matrix.Add(Example());
  matrix.Add(-1, 0);
  matrix.Add(4, 0);
  EXPECT_EQ(matrix.total(), 12);
  EXPECT_EQ(matrix.at(0, 0), 4);
}

TEST(Metrics, TopCountsTies) {
  const float scores[] = {0.5F, 2, 1, 1, 0};
  EXPECT_EQ(PredictedClass(scores), 1);
  EXPECT_TRUE(IsAmongTop(scores, 1, 1));
  EXPECT_TRUE(IsAmongTop(scores, 2, 2));
  EXPECT_FALSE(IsAmongTop(scores, 3, 2));  // as large as class 2, which comes first
  EXPECT_TRUE(IsAmongTop(scores, 3, 3));
  EXPECT_FALSE(IsAmongTop(scores, 4, 4));
  EXPECT_FALSE(IsAmongTop(scores, 5, 5));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(PredictedClass(std::vector<float>{nan, -1, nan, 3}), 3);
  EXPECT_FALSE(IsAmongTop(std::vector<float>{nan, 1}, 0, 2));
}

TEST(Metrics, CrossEntropyDoesNotOverflow) {
  EXPECT_NEAR(CrossEntropy(std::vector<float>{1, 2, 3}, 0), 2.4076059644443806, 1e-12);
  EXPECT_NEAR(CrossEntropy(std::vector<float>{1000, 0}, 1), 1000, 1e-9);
}

TEST(Metrics, SumsAddBatches) {
  const ClassLoss of_probabilities{ClassLoss::Kind::kCrossEntropyOfProbabilities};
  MetricSums evaluation(3);
  const float logits[] = {3, 1, 2, /**/ 0, 0, 1};
  const int64_t labels[] = {0, 1};
  ASSERT_TRUE(evaluation.Add(logits, labels, 1, {}).ok());
  const float probabilities[] = {0.25F, 0.5F, 0.25F};
  const int64_t label[] = {1}, ignored[] = {-1};
  ASSERT_TRUE(evaluation.Add(probabilities, label, 1, of_probabilities).ok());
  ASSERT_TRUE(evaluation.Add(probabilities, ignored, 1, of_probabilities).ok());
  EXPECT_EQ(evaluation.count(), 3);
  EXPECT_DOUBLE_EQ(Accuracy(evaluation.confusion), 2.0 / 3);
  EXPECT_DOUBLE_EQ(evaluation.top5(), 1);
  const double expected =
      (std::log(1 + std::exp(-2) + std::exp(-1)) + std::log(2 + std::exp(1)) + std::log(2)) / 3;
  EXPECT_NEAR(evaluation.loss(), expected, 1e-12);
  EXPECT_FALSE(evaluation.Add(logits, label, 1, {}).ok());
}

// As in training with a target of 1 for the class and 0 for others; the mean over classes.
TEST(Metrics, LossesOfElementsCompareWithOneForTheClass) {
  const std::vector<float> scores{0.5F, -2, 3};
  const auto loss = [&](ClassLoss::Kind kind, double delta = 1) {
    return ClassLoss{kind, delta}.Of(scores, 2);
  };
  EXPECT_NEAR(loss(ClassLoss::Kind::kMeanSquares), (0.25 + 4 + 4) / 3, 1e-12);
  EXPECT_NEAR(loss(ClassLoss::Kind::kMeanAbsolute), (0.5 + 2 + 2) / 3, 1e-12);
  EXPECT_NEAR(loss(ClassLoss::Kind::kHuber), (0.125 + 1.5 + 1.5) / 3, 1e-12);
  EXPECT_NEAR(loss(ClassLoss::Kind::kHuber, 3), (0.125 + 2 + 2) / 3, 1e-12);
  const double expected =
      (std::log1p(std::exp(0.5)) + std::log1p(std::exp(-2)) + std::log1p(std::exp(3)) - 3) / 3;
  EXPECT_NEAR(loss(ClassLoss::Kind::kBinaryCrossEntropyWithLogits), expected, 1e-12);
}

TEST(Metrics, SumsOfPixelsReadsAcrossChannels) {
  MetricSums evaluation(2);
  // Two classes, three pixels: the scores of class 0, then of class 1.
  const float scores[] = {1, 0, 5, /**/ 0, 1, 4};
  const int64_t labels[] = {0, 1, 1};
  ASSERT_TRUE(evaluation.Add(scores, labels, 3, {}).ok());
  EXPECT_EQ(evaluation.confusion.at(0, 0), 1);
  EXPECT_EQ(evaluation.confusion.at(1, 1), 1);
  EXPECT_EQ(evaluation.confusion.at(1, 0), 1);
  const std::vector<double> iou = IntersectionOverUnion(evaluation.confusion);
  EXPECT_DOUBLE_EQ(MeanOfKnown(iou), 0.5);
}

}  // namespace
}  // namespace msrt::testing
