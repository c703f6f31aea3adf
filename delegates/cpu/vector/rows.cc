// Softmax along rows and along columns, and the moments of a row.
#include "delegates/cpu/vector/math.h"
#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr int64_t kLanes = 64;  // independent folds of a row: four vectors of 16

float Larger(float folded, float x) { return x > folded || x != x ? x : folded; }

float LargestOf(const float* x, int64_t count) {
  float lane[kLanes];
  for (int64_t k = 0; k < kLanes; ++k) lane[k] = -kInfinity;
  int64_t i = 0;
  for (; count - i >= kLanes; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lane[k] = Larger(lane[k], x[i + k]);
  }
  for (int64_t k = 0; i < count; ++i, ++k) lane[k] = Larger(lane[k], x[i]);
  float largest = -kInfinity;
  for (int64_t k = 0; k < kLanes; ++k) largest = Larger(largest, lane[k]);
  return largest;
}

// y = e^(x - shift); returns the sum. Rows are short enough for sums in f32: 64 lanes.
float ExpAndSum(const float* x, float* y, int64_t count, float shift) {
  float lane[kLanes];
  for (int64_t k = 0; k < kLanes; ++k) lane[k] = 0;
  int64_t i = 0;
  for (; count - i >= kLanes; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const float e = Exp(x[i + k] - shift);
      y[i + k] = e;
      lane[k] += e;
    }
  }
  const int64_t rest = count - i;
#pragma GCC ivdep
  for (int64_t k = 0; k < rest; ++k) y[i + k] = Exp(x[i + k] - shift);
  for (int64_t k = 0; k < rest; ++k) lane[k] += y[i + k];
  double sum = 0;
  for (int64_t k = 0; k < kLanes; ++k) sum += static_cast<double>(lane[k]);
  return static_cast<float>(sum);
}

void SoftmaxRow(const float* x, float* y, int64_t count, bool log) {
  const float largest = LargestOf(x, count);
  if (!log) {
    const float factor = 1.0f / ExpAndSum(x, y, count, largest);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] *= factor;
    return;
  }
  float lane[kLanes];
  for (int64_t k = 0; k < kLanes; ++k) lane[k] = 0;
  int64_t i = 0;
  for (; count - i >= kLanes; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lane[k] += Exp(x[i + k] - largest);
  }
  for (int64_t k = 0; i < count; ++i, ++k) lane[k] += Exp(x[i] - largest);
  float sum = 0;
  for (int64_t k = 0; k < kLanes; ++k) sum += lane[k];
  const float shift = Log(sum);
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) y[j] = (x[j] - largest) - shift;
}

// Columns of one tile, each with `lines` elements that are `step` apart.
template <int Columns>
void SoftmaxTile(const float* x, float* y, int64_t lines, int64_t step, int64_t columns, bool log) {
  const int64_t n = Columns > 0 ? Columns : columns;
  float largest[kLanes], sum[kLanes];
  for (int64_t c = 0; c < n; ++c) largest[c] = -kInfinity, sum[c] = 0;
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t c = 0; c < n; ++c) largest[c] = Larger(largest[c], x[line * step + c]);
  }
  for (int64_t line = 0; line < lines; ++line) {
#pragma GCC ivdep
    for (int64_t c = 0; c < n; ++c) {
      const float shifted = x[line * step + c] - largest[c], e = Exp(shifted);
      y[line * step + c] = log ? shifted : e;
      sum[c] += e;
    }
  }
  for (int64_t c = 0; c < n; ++c) sum[c] = log ? Log(sum[c]) : 1.0f / sum[c];
  for (int64_t line = 0; line < lines; ++line) {
#pragma GCC ivdep
    for (int64_t c = 0; c < n; ++c)
      y[line * step + c] = log ? y[line * step + c] - sum[c] : y[line * step + c] * sum[c];
  }
}

void SoftmaxColumns(const float* x, float* y, int64_t lines, int64_t step, int64_t columns,
                    bool log) {
  int64_t c = 0;
  for (; columns - c >= kLanes; c += kLanes)
    SoftmaxTile<kLanes>(x + c, y + c, lines, step, kLanes, log);
  if (c < columns) SoftmaxTile<0>(x + c, y + c, lines, step, columns - c, log);
}

// Two passes: the mean, then the squares of the distances from it.
Moments MomentsOf(const float* x, int64_t count) {
  float lane[kLanes];
  const auto total = [&] {
    double sum = 0;
    for (int64_t k = 0; k < kLanes; ++k) sum += static_cast<double>(lane[k]);
    return sum;
  };
  constexpr int64_t kBlock = kLanes * 64;  // as many elements as lanes sum in f32
  double sum = 0, squares = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    for (int64_t k = 0; k < kLanes; ++k) lane[k] = 0;
    int64_t i = begin;
    for (; end - i >= kLanes; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) lane[k] += x[i + k];
    }
    for (int64_t k = 0; i < end; ++i, ++k) lane[k] += x[i];
    sum += total();
  }
  const double mean = sum / static_cast<double>(count);
  const auto center = static_cast<float>(mean);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    for (int64_t k = 0; k < kLanes; ++k) lane[k] = 0;
    int64_t i = begin;
    for (; end - i >= kLanes; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) lane[k] += (x[i + k] - center) * (x[i + k] - center);
    }
    for (int64_t k = 0; i < end; ++i, ++k) lane[k] += (x[i] - center) * (x[i] - center);
    squares += total();
  }
  // The rounding of the center moved every distance by as much.
  const double shift = mean - static_cast<double>(center);
  return {mean, squares / static_cast<double>(count) - shift * shift};
}

void NormalizeRow(const float* x, float* y, int64_t count, float center, float factor,
                  const float* scale, const float* bias) {
  if (bias == nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - center) * factor * scale[i];
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = (x[i] - center) * factor * scale[i] + bias[i];
}

}  // namespace

void FillRows(Loops* loops) {
  loops->softmax_row = SoftmaxRow;
  loops->softmax_columns = SoftmaxColumns;
  loops->moments = MomentsOf;
  loops->normalize_row = NormalizeRow;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
