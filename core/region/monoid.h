// The monoids that combine several numbers of a partial result: see core/region/space.h. The order
// of combination is the order of the pieces along the axis; each formula is associative up to
// rounding, and exact where one side is the neutral element.
#pragma once

#include <cmath>
#include <limits>

namespace msrt {

// log(exp(a) + exp(b)) without overflow; minus infinity is neutral.
inline double LogSumExp(double a, double b) {
  const double greater = a > b || std::isnan(a) ? a : b, lesser = a > b || std::isnan(a) ? b : a;
  if (lesser == -std::numeric_limits<double>::infinity()) return greater;
  if (greater == std::numeric_limits<double>::infinity() && !std::isnan(lesser)) return greater;
  return greater + std::log1p(std::exp(lesser - greater));
}

// Mean and variance of `count` elements (Chan, Golub, LeVeque: "Updating formulae and a pairwise
// algorithm for computing sample variances", 1979). No elements are neutral, whatever their
// moments.
struct Moments {
  double count = 0, mean = 0, variance = 0;
};
inline Moments Combine(const Moments& a, const Moments& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double count = a.count + b.count, share = b.count / count, apart = b.mean - a.mean;
  return {count, a.mean + apart * share,
          a.variance * (1 - share) + b.variance * share + apart * apart * share * (1 - share)};
}

// The mean of values weighted by exp(score), and the log-sum-exp of the scores. A part without
// weight (minus infinity) is neutral.
struct WeightedMean {
  double mean = 0, log_weight = -std::numeric_limits<double>::infinity();
};
inline WeightedMean Combine(const WeightedMean& a, const WeightedMean& b) {
  if (b.log_weight == -std::numeric_limits<double>::infinity()) return a;
  if (a.log_weight == -std::numeric_limits<double>::infinity()) return b;
  const double log_weight = LogSumExp(a.log_weight, b.log_weight);
  return {
      a.mean * std::exp(a.log_weight - log_weight) + b.mean * std::exp(b.log_weight - log_weight),
      log_weight};
}

}  // namespace msrt
