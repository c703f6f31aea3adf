// Sums over a batch and what is applied with them: normalization in training and its gradient; the
// gradient of a maximum.
#include "delegates/cpu/vector/parts.h"
#include "delegates/cpu/vector/vector.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr int64_t kSums = 32;  // independent sums of a row
constexpr int64_t kRun = 64;   // elements of a lane, or lines, before a sum goes into the double
constexpr int64_t kTile = 32;  // columns at once, whose sums stay in registers

// u of the two sums: the factor, or what stands in for it.
template <bool kSquares>
inline float FactorOf(const float* factor, int64_t i, float centred) {
  if constexpr (kSquares) return centred;
  else return factor[i];
}

template <bool kSquares>
void SumLine(const float* factor, const float* x, float center, int64_t count, double* sum,
             double* products) {
  int64_t i = 0;
  while (count - i >= kSums) {
    float s[kSums] = {}, p[kSums] = {};
    const int64_t rounds = (count - i) / kSums, depth = rounds < kRun ? rounds : kRun;
    for (int64_t r = 0; r < depth; ++r, i += kSums) {
      for (int64_t k = 0; k < kSums; ++k) {
        const float centred = x[i + k] - center, u = FactorOf<kSquares>(factor, i + k, centred);
        s[k] += u;
        p[k] += u * centred;
      }
    }
    for (int64_t k = 0; k < kSums; ++k) {
      *sum += static_cast<double>(s[k]);
      *products += static_cast<double>(p[k]);
    }
  }
  for (; i < count; ++i) {
    const float centred = x[i] - center, u = FactorOf<kSquares>(factor, i, centred);
    *sum += static_cast<double>(u);
    *products += static_cast<double>(u) * static_cast<double>(centred);
  }
}

// `Columns` of them, or `columns` if that is 0.
template <bool kSquares, int64_t Columns>
void SumTile(const CenteredSums& a, int64_t first, int64_t columns) {
  const int64_t width = Columns > 0 ? Columns : columns;
  for (int64_t line = 0; line < a.lines; line += kRun) {
    const int64_t end = line + kRun < a.lines ? line + kRun : a.lines;
    float s[kTile] = {}, p[kTile] = {};
    for (int64_t l = line; l < end; ++l) {
      const float* x = a.x + l * a.columns + first;
      const float* factor = kSquares ? nullptr : a.factor + l * a.columns + first;
      for (int64_t k = 0; k < width; ++k) {
        const float centred = x[k] - a.center[first + k];
        const float u = FactorOf<kSquares>(factor, k, centred);
        s[k] += u;
        p[k] += u * centred;
      }
    }
    for (int64_t k = 0; k < width; ++k) {
      a.sums[first + k] += static_cast<double>(s[k]);
      a.products[first + k] += static_cast<double>(p[k]);
    }
  }
}

template <bool kSquares>
void SumColumns(const CenteredSums& a) {
  int64_t c = 0;
  for (; c + kTile <= a.columns; c += kTile) SumTile<kSquares, kTile>(a, c, kTile);
  if (c < a.columns) SumTile<kSquares, 0>(a, c, a.columns - c);
}

void SumsByLine(const CenteredSums& a) {
  for (int64_t l = 0; l < a.lines; ++l) {
    const float* x = a.x + l * a.columns;
    if (a.factor == nullptr)
      SumLine<true>(nullptr, x, a.center[l], a.columns, &a.sums[l], &a.products[l]);
    else
      SumLine<false>(a.factor + l * a.columns, x, a.center[l], a.columns, &a.sums[l],
                     &a.products[l]);
  }
}
void SumsByColumn(const CenteredSums& a) {
  if (a.factor == nullptr) SumColumns<true>(a);
  else SumColumns<false>(a);
}

void CombineByLine(const CenteredCombination& a) {
  for (int64_t l = 0; l < a.lines; ++l) {
    const float *grad = a.grad + l * a.columns, *x = a.x + l * a.columns;
    float* y = a.y + l * a.columns;
    const float f = a.grad_factor[l], g = a.factor[l], center = a.center[l], shift = a.shift[l];
    for (int64_t i = 0; i < a.columns; ++i) y[i] = f * grad[i] + g * (x[i] - center) + shift;
  }
}
void CombineByColumn(const CenteredCombination& a) {
  for (int64_t l = 0; l < a.lines; ++l) {
    const float *grad = a.grad + l * a.columns, *x = a.x + l * a.columns;
    float* y = a.y + l * a.columns;
    for (int64_t i = 0; i < a.columns; ++i)
      y[i] = a.grad_factor[i] * grad[i] + a.factor[i] * (x[i] - a.center[i]) + a.shift[i];
  }
}

// The sums of the row are of short runs, as those of a reduction.
void LayerGradient(const LayerGradientRow& a) {
  double sum = 0, products = 0;
  int64_t i = 0;
  while (i < a.count) {
    const int64_t left = a.count - i, run = left < kSums * kRun ? left : kSums * kRun;
    float s[kSums] = {}, p[kSums] = {};
    const int64_t whole = run / kSums * kSums;
    for (int64_t j = 0; j < whole; j += kSums) {
      for (int64_t k = 0; k < kSums; ++k) {
        const int64_t at = i + j + k;
        const float w = a.grad[at] * a.scale[at];
        a.y[at] = w;
        s[k] += w;
        p[k] += w * ((a.x[at] - a.mean) * a.inverse);
      }
    }
    for (int64_t k = 0; k < run - whole; ++k) {
      const int64_t at = i + whole + k;
      const float w = a.grad[at] * a.scale[at];
      a.y[at] = w;
      s[k] += w;
      p[k] += w * ((a.x[at] - a.mean) * a.inverse);
    }
    for (int64_t k = 0; k < kSums; ++k) {
      sum += static_cast<double>(s[k]);
      products += static_cast<double>(p[k]);
    }
    i += run;
  }
  const auto average = static_cast<float>(sum / static_cast<double>(a.count));
  const auto along = static_cast<float>(products / static_cast<double>(a.count));
  for (int64_t j = 0; j < a.count; ++j) {
    const float n = (a.x[j] - a.mean) * a.inverse;
    // The rounded product, of which the average is one: a fused multiply-add would leave its
    // rounding where a row's products are equal and the result is zero.
    a.y[j] = a.inverse * (a.y[j] - average - n * along);
    a.scale_sums[j] += a.grad[j] * n;
    a.sums[j] += a.grad[j];
  }
}

// The first of equal elements is the greatest; a NaN is greater than everything.
template <int L>
inline __attribute__((always_inline)) void AddToGreatestOf(const float* const* taps,
                                                           float* const* results, int64_t count,
                                                           const float* grad, int64_t first) {
  using V = Vector<L>;
  using Mask = decltype(V{} <= V{});
  V best = Load<L>(taps[0] + first);
  Mask where{};
  for (int64_t t = 1; t < count; ++t) {
    const V x = Load<L>(taps[t] + first);
    const Mask greater = ~(x <= best) & (best == best);
    best = greater ? x : best;
    where = greater ? Mask{} + static_cast<int32_t>(t) : where;
  }
  const V share = Load<L>(grad + first);
  for (int64_t t = 0; t < count; ++t) {
    const Mask here = where == Mask{} + static_cast<int32_t>(t);
    float* const y = results[t] + first;
    Store<L>(Load<L>(y) + (here ? share : V{}), y);
  }
}

void AddToGreatest(const float* const* taps, float* const* results, int64_t count,
                   const float* grad, int64_t columns) {
  if (count == 0) return;
  constexpr int kWide = cpu::MSRT_CPU_ISA::kLanes;
  int64_t c = 0;
  for (; c + kWide <= columns; c += kWide) AddToGreatestOf<kWide>(taps, results, count, grad, c);
  for (; c + 4 <= columns; c += 4) AddToGreatestOf<4>(taps, results, count, grad, c);
  for (; c < columns; ++c) {
    float best = taps[0][c];
    int64_t where = 0;
    for (int64_t t = 1; t < count; ++t) {
      const float x = taps[t][c];
      if (x <= best || best != best) continue;
      best = x, where = t;
    }
    for (int64_t t = 0; t < count; ++t) results[t][c] += t == where ? grad[c] : 0.0f;
  }
}

}  // namespace

void FillGradients(Loops* loops) {
  loops->centered_sums_by_line = SumsByLine;
  loops->centered_sums_by_column = SumsByColumn;
  loops->combine_by_line = CombineByLine;
  loops->combine_by_column = CombineByColumn;
  loops->layer_gradient = LayerGradient;
  loops->add_to_greatest = AddToGreatest;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
