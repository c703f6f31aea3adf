// Measures of a classifier or a segmentation, from its scores and the labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

namespace msrt {

// How often samples (or pixels) of class `row` were classified as class `column`. Counts add up
// over batches and ranks in any order.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(int64_t classes)
      : classes_(classes), counts_(static_cast<size_t>(classes * classes)) {}

  int64_t classes() const { return classes_; }
  // Labels outside of 0 to classes - 1 are ignored. Requires a prediction inside.
  void Add(int64_t label, int64_t predicted, int64_t count = 1);
  // Requires the same number of classes.
  void Add(const ConfusionMatrix& other);
  int64_t at(int64_t label, int64_t predicted) const {
    return counts_[static_cast<size_t>(label * classes_ + predicted)];
  }
  std::span<const int64_t> counts() const { return counts_; }
  std::span<int64_t> counts() { return counts_; }
  int64_t total() const;

 private:
  int64_t classes_;
  std::vector<int64_t> counts_;
};

// The share of right answers. NaN without samples.
double Accuracy(const ConfusionMatrix& matrix);
// For each class the share of its samples that were recognised (its recall). NaN without samples.
std::vector<double> ClassAccuracies(const ConfusionMatrix& matrix);
// For each class the share of samples classified so that are of it. NaN where there are none.
std::vector<double> ClassPrecisions(const ConfusionMatrix& matrix);
// For each class intersection over union: right / (of the class or classified so). NaN for a class
// that occurs in neither.
std::vector<double> IntersectionOverUnion(const ConfusionMatrix& matrix);
// The mean of the numbers that are not NaN; NaN if there is none.
double MeanOfKnown(std::span<const double> values);

// The class with the largest score; the first of several. NaN counts as the smallest.
int64_t PredictedClass(std::span<const float> scores);
// Whether `label` is among the `k` largest scores. Equal scores count for the smaller class first.
bool IsAmongTop(std::span<const float> scores, int64_t label, int64_t k);
// -log softmax(scores)[label], in double.
double CrossEntropy(std::span<const float> scores, int64_t label);

// The loss of an evaluation with classes as labels. All but cross-entropy compare the scores with 1
// for the class and 0 for others, and take the mean over classes.
struct ClassLoss {
  enum class Kind : uint8_t {
    kCrossEntropy,
    kCrossEntropyOfProbabilities,
    kMeanSquares,
    kMeanAbsolute,
    kHuber,
    kBinaryCrossEntropyWithLogits,
  };
  Kind kind = Kind::kCrossEntropy;
  double delta = 1;  // Huber

  // Of one sample. Requires a label inside.
  double Of(std::span<const float> scores, int64_t label) const;
};

// Sums over the samples of an evaluation.
struct MetricSums {
  explicit MetricSums(int64_t classes) : confusion(classes) {}
  ConfusionMatrix confusion;
  int64_t in_top5 = 0;
  double loss_sum = 0;

  // Adds scores of samples x classes x `inner` (1, or pixels) with samples x inner labels. Errors
  // name the sizes.
  Status Add(std::span<const float> scores, std::span<const int64_t> labels, int64_t inner,
             const ClassLoss& loss);
  int64_t count() const { return confusion.total(); }
  double top5() const;
  double loss() const;
};

}  // namespace msrt
