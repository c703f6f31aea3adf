// Sums in double with the bits of MSRT_ARITHMETIC_REFERENCE: one term after the other, each product
// and each sum rounded. This file is compiled without contraction into fused multiply-adds. Vectors
// go along columns and channels, never along a sum.
#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

struct Sum {
  static double Join(double folded, double x) { return folded + x; }
};
struct SumSquare {
  static double Join(double folded, double x) { return folded + x * x; }
};
struct SumAbs {
  static double Join(double folded, double x) { return folded + (x < 0 ? -x : x); }
};
// NaN wins; of equal elements, the first.
struct Largest {
  static double Join(double folded, double x) {
    return ((x > folded) | (x != x)) & (folded == folded) ? x : folded;
  }
};
struct Smallest {
  static double Join(double folded, double x) {
    return ((x < folded) | (x != x)) & (folded == folded) ? x : folded;
  }
};

template <typename F>
void RowOf(const float* x, int64_t count, double* result) {
  double folded = *result;
  for (int64_t i = 0; i < count; ++i) folded = F::Join(folded, static_cast<double>(x[i]));
  *result = folded;
}

// A constant number of columns keeps their sums in registers.
template <typename F, int Columns>
void ColumnTile(const float* x, int64_t lines, int64_t step, double* result) {
  double folded[Columns];
  for (int c = 0; c < Columns; ++c) folded[c] = result[c];
  for (int64_t line = 0; line < lines; ++line) {
    const float* row = x + line * step;
    for (int c = 0; c < Columns; ++c) folded[c] = F::Join(folded[c], static_cast<double>(row[c]));
  }
  for (int c = 0; c < Columns; ++c) result[c] = folded[c];
}

template <typename F>
void ColumnsOf(const float* x, int64_t lines, int64_t step, int64_t columns, double* result) {
  int64_t c = 0;
  for (; columns - c >= 32; c += 32) ColumnTile<F, 32>(x + c, lines, step, result + c);
  for (; columns - c >= 8; c += 8) ColumnTile<F, 8>(x + c, lines, step, result + c);
  for (; c < columns; ++c) ColumnTile<F, 1>(x + c, lines, step, result + c);
}

template <typename F>
void Set(Reduce how, Loops* loops) {
  loops->reduce_row_in_order[static_cast<size_t>(how)] = RowOf<F>;
  loops->reduce_columns_in_order[static_cast<size_t>(how)] = ColumnsOf<F>;
}

// ---- weighted sums ------------------------------------------------------------------------------

void BlendTwoLines(const float* a, const float* b, double wa, double wb, double* y,
                   int64_t columns) {
  for (int64_t i = 0; i < columns; ++i)
    y[i] = 0.0 + wa * static_cast<double>(a[i]) + wb * static_cast<double>(b[i]);
}

void Lines(const float* const* lines, const double* weights, int64_t count, double* y,
           int64_t columns) {
  if (count == 2 && weights[0] != 0 && weights[1] != 0)
    return BlendTwoLines(lines[0], lines[1], weights[0], weights[1], y, columns);
  for (int64_t i = 0; i < columns; ++i) y[i] = 0;
  for (int64_t t = 0; t < count; ++t) {
    if (weights[t] == 0) continue;
    for (int64_t i = 0; i < columns; ++i) y[i] += weights[t] * static_cast<double>(lines[t][i]);
  }
}

void TwoPixels(const double* a, const double* b, double wa, double wb, float* y, int64_t width) {
  for (int64_t c = 0; c < width; ++c) y[c] = static_cast<float>(0.0 + wa * a[c] + wb * b[c]);
}

void Pixels(const BlendPixels& p) {
  for (int64_t o = 0; o < p.outputs; ++o) {
    const int64_t* index = p.index + o * p.taps;
    const double* weights = p.weights + o * p.taps;
    float* y = p.y + o * p.width;
    if (p.taps == 2 && weights[0] != 0 && weights[1] != 0) {
      TwoPixels(p.x + index[0] * p.width, p.x + index[1] * p.width, weights[0], weights[1], y,
                p.width);
      continue;
    }
    for (int64_t c = 0; c < p.width; ++c) {
      double sum = 0;
      for (int64_t t = 0; t < p.taps; ++t) {
        if (weights[t] != 0) sum += weights[t] * p.x[index[t] * p.width + c];
      }
      y[c] = static_cast<float>(sum);
    }
  }
}

}  // namespace

void FillInOrder(Loops* loops) {
  Set<Sum>(Reduce::kSum, loops);
  Set<SumSquare>(Reduce::kSumSquare, loops);
  Set<SumAbs>(Reduce::kSumAbs, loops);
  Set<Largest>(Reduce::kMax, loops);
  Set<Smallest>(Reduce::kMin, loops);
  loops->blend_lines = Lines;
  loops->blend_pixels = Pixels;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
