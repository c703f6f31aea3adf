#include "core/train/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msrt {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double Ratio(int64_t part, int64_t whole) {
  return whole == 0 ? kNan : static_cast<double>(part) / static_cast<double>(whole);
}

struct Margins {
  std::vector<int64_t> labels, predictions;  // per class
};
Margins MarginsOf(const ConfusionMatrix& matrix) {
  const auto classes = static_cast<size_t>(matrix.classes());
  Margins margins{std::vector<int64_t>(classes), std::vector<int64_t>(classes)};
  for (size_t label = 0; label < classes; ++label) {
    for (size_t predicted = 0; predicted < classes; ++predicted) {
      const int64_t count = matrix.counts()[label * classes + predicted];
      margins.labels[label] += count;
      margins.predictions[predicted] += count;
    }
  }
  return margins;
}

// Returns ratio(right, of the class, classified so) of each class.
template <typename RatioOfClass>
std::vector<double> PerClass(const ConfusionMatrix& matrix, const RatioOfClass& ratio) {
  const Margins margins = MarginsOf(matrix);
  std::vector<double> ratios;
  for (int64_t c = 0; c < matrix.classes(); ++c) {
    const auto i = static_cast<size_t>(c);
    ratios.push_back(ratio(matrix.at(c, c), margins.labels[i], margins.predictions[i]));
  }
  return ratios;
}

}  // namespace

void ConfusionMatrix::Add(int64_t label, int64_t predicted, int64_t count) {
  if (label < 0 || label >= classes_) return;
  MSRT_CHECK(predicted >= 0 && predicted < classes_);
  counts_[static_cast<size_t>(label * classes_ + predicted)] += count;
}

void ConfusionMatrix::Add(const ConfusionMatrix& other) {
  MSRT_CHECK(classes_ == other.classes_);
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

int64_t ConfusionMatrix::total() const {
  int64_t total = 0;
  for (const int64_t count : counts_) total += count;
  return total;
}

double Accuracy(const ConfusionMatrix& matrix) {
  int64_t right = 0;
  for (int64_t c = 0; c < matrix.classes(); ++c) right += matrix.at(c, c);
  return Ratio(right, matrix.total());
}

std::vector<double> ClassAccuracies(const ConfusionMatrix& matrix) {
  return PerClass(matrix,
                  [](int64_t right, int64_t labels, int64_t) { return Ratio(right, labels); });
}

std::vector<double> ClassPrecisions(const ConfusionMatrix& matrix) {
  return PerClass(
      matrix, [](int64_t right, int64_t, int64_t predicted) { return Ratio(right, predicted); });
}

std::vector<double> IntersectionOverUnion(const ConfusionMatrix& matrix) {
  return PerClass(matrix, [](int64_t right, int64_t labels, int64_t predicted) {
    return Ratio(right, labels + predicted - right);
  });
}

double MeanOfKnown(std::span<const double> values) {
  double sum = 0;
  int64_t known = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    ++known;
  }
  return known == 0 ? kNan : sum / static_cast<double>(known);
}

int64_t PredictedClass(std::span<const float> scores) {
  size_t best = 0;
  for (size_t c = 1; c < scores.size(); ++c) {
    if (scores[c] > scores[best] || (std::isnan(scores[best]) && !std::isnan(scores[c]))) best = c;
  }
  return static_cast<int64_t>(best);
}

bool IsAmongTop(std::span<const float> scores, int64_t label, int64_t k) {
  if (label < 0 || label >= static_cast<int64_t>(scores.size())) return false;
  const float own = scores[static_cast<size_t>(label)];
  if (std::isnan(own)) return false;
  int64_t before = 0;
  for (size_t c = 0; c < scores.size(); ++c)
    before += scores[c] > own || (scores[c] == own && static_cast<int64_t>(c) < label);
  return before < k;
}

double CrossEntropy(std::span<const float> scores, int64_t label) {
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - max);
  return std::log(sum) + max - scores[static_cast<size_t>(label)];
}

double ClassLoss::Of(std::span<const float> scores, int64_t label) const {
  if (kind == Kind::kCrossEntropy) return CrossEntropy(scores, label);
  if (kind == Kind::kCrossEntropyOfProbabilities) {
    return -std::log(
        std::max<double>(scores[static_cast<size_t>(label)], std::numeric_limits<float>::min()));
  }
  double sum = 0;
  for (size_t c = 0; c < scores.size(); ++c) {
    const double score = scores[c], target = static_cast<int64_t>(c) == label ? 1 : 0;
    const double distance = std::abs(score - target);
    switch (kind) {
      case Kind::kMeanSquares:
        sum += distance * distance;
        break;
      case Kind::kMeanAbsolute:
        sum += distance;
        break;
      case Kind::kHuber:
        sum += distance <= delta ? 0.5 * distance * distance : delta * (distance - 0.5 * delta);
        break;
      default:  // log(1 + exp(score)) - score * target, without overflow
        sum += std::max(score, 0.0) + std::log1p(std::exp(-std::abs(score))) - score * target;
    }
  }
  return sum / static_cast<double>(scores.size());
}

Status MetricSums::Add(std::span<const float> scores, std::span<const int64_t> labels,
                       int64_t inner, const ClassLoss& loss) {
  const int64_t classes = confusion.classes();
  if (inner < 1 || static_cast<int64_t>(labels.size()) % inner != 0 ||
      scores.size() != labels.size() * static_cast<size_t>(classes))
    return InvalidArgument("evaluation: ", scores.size(), " scores for ", labels.size(),
                           " labels of ", classes, " classes");
  std::vector<float> own(static_cast<size_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    const int64_t label = labels[i];
    if (label < 0 || label >= classes) continue;
    const int64_t sample = static_cast<int64_t>(i) / inner, at = static_cast<int64_t>(i) % inner;
    for (int64_t c = 0; c < classes; ++c)
      own[static_cast<size_t>(c)] =
          scores[static_cast<size_t>((sample * classes + c) * inner + at)];
    confusion.Add(label, PredictedClass(own));
    in_top5 += IsAmongTop(own, label, 5);
    loss_sum += loss.Of(own, label);
  }
  return OkStatus();
}

double MetricSums::top5() const { return Ratio(in_top5, count()); }

double MetricSums::loss() const {
  return count() == 0 ? kNan : loss_sum / static_cast<double>(count());
}

}  // namespace msrt
