#include "delegates/cpu/vector/math.h"
#include "delegates/cpu/vector/parts.h"
#include "delegates/cpu/vector/vector.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

// How one element joins what was folded before it. Sums start again after so many elements of a
// lane: their error stays that of a short sum, and the parts are added in double.
struct Sum {
  static constexpr bool kIsSum = true;
  static constexpr float kStart = 0;
  template <typename V>
  static V Join(V folded, V x) {
    return folded + x;
  }
};
struct SumSquare : Sum {
  static float Join(float folded, float x) { return folded + x * x; }
};
struct SumAbs : Sum {
  static float Join(float folded, float x) { return folded + Abs(x); }
};
struct Largest {
  static constexpr bool kIsSum = false;
  static constexpr float kStart = -kInfinity;
  // Without a branch between the two conditions, so that it vectorises.
  template <typename V>
  static V Join(V folded, V x) {
    return ((x > folded) | (x != x)) ? x : folded;
  }
};
struct Smallest {
  static constexpr bool kIsSum = false;
  static constexpr float kStart = kInfinity;
  // Without a branch between the two conditions, so that it vectorises.
  template <typename V>
  static V Join(V folded, V x) {
    return ((x < folded) | (x != x)) ? x : folded;
  }
};

constexpr int64_t kRowLanes = 64;  // independent sums of a row: four vectors of 16
constexpr int64_t kDepth = 64;     // elements of a lane before its sum goes into the double
constexpr int64_t kColumnTile =
    64;  // columns that are folded at once, so that their sums stay in registers

template <typename F>
void Merge(float part, double* result) {
  if constexpr (F::kIsSum) *result += static_cast<double>(part);
  else *result = static_cast<double>(F::Join(static_cast<float>(*result), part));
}

template <typename F>
void RowOf(const float* x, int64_t count, double* result) {
  int64_t i = 0;
  while (count - i >= kRowLanes) {
    float lane[kRowLanes];
    for (int64_t k = 0; k < kRowLanes; ++k) lane[k] = F::kStart;
    const int64_t rounds = (count - i) / kRowLanes, depth = rounds < kDepth ? rounds : kDepth;
    for (int64_t r = 0; r < depth; ++r, i += kRowLanes) {
      for (int64_t k = 0; k < kRowLanes; ++k) lane[k] = F::Join(lane[k], x[i + k]);
    }
    for (int64_t k = 0; k < kRowLanes; ++k) Merge<F>(lane[k], result);
  }
  for (; i < count; ++i) Merge<F>(F::Join(F::kStart, x[i]), result);
}

template <typename F, int Columns>
void ColumnTile(const float* x, int64_t lines, int64_t step, int64_t columns, double* result) {
  const int64_t n = Columns > 0 ? Columns : columns;
  for (int64_t first = 0; first < lines; first += kDepth) {
    float part[kColumnTile];
    for (int64_t c = 0; c < n; ++c) part[c] = F::kStart;
    const int64_t end = first + kDepth < lines ? first + kDepth : lines;
    for (int64_t line = first; line < end; ++line) {
      const float* row = x + line * step;
      for (int64_t c = 0; c < n; ++c) part[c] = F::Join(part[c], row[c]);
    }
    for (int64_t c = 0; c < n; ++c) Merge<F>(part[c], result + c);
  }
}

template <typename F>
void ColumnsOf(const float* x, int64_t lines, int64_t step, int64_t columns, double* result) {
  int64_t c = 0;
  for (; columns - c >= kColumnTile; c += kColumnTile)
    ColumnTile<F, kColumnTile>(x + c, lines, step, kColumnTile, result + c);
  for (; columns - c >= 16; c += 16) ColumnTile<F, 16>(x + c, lines, step, 16, result + c);
  for (; columns - c >= 8; c += 8) ColumnTile<F, 8>(x + c, lines, step, 8, result + c);
  if (c < columns) ColumnTile<F, 0>(x + c, lines, step, columns - c, result + c);
}

// Folds V vectors of L columns each, which stay in registers over all lines.
template <typename F, int L, int V, typename Finish>
void FoldColumns(const float* const* lines, int64_t count, float* y, int64_t first, Finish finish) {
  Vector<L> folded[V];
  for (int v = 0; v < V; ++v) folded[v] = Vector<L>{} + F::kStart;
  for (int64_t line = 0; line < count; ++line) {
    for (int v = 0; v < V; ++v) {
      folded[v] = F::Join(folded[v], Load<L>(lines[line] + first + v * L));
    }
  }
  for (int v = 0; v < V; ++v) Store<L>(finish(folded[v]), y + first + v * L);
}

template <typename F, typename Finish>
void FoldLines(const float* const* lines, int64_t count, float* y, int64_t columns, Finish finish) {
  constexpr int kSmall = 4;  // lanes of the narrowest vector worth loading
  int64_t c = 0;
  for (; columns - c >= 4 * kLanes; c += 4 * kLanes) {
    FoldColumns<F, kLanes, 4>(lines, count, y, c, finish);
  }
  for (; columns - c >= kLanes; c += kLanes) FoldColumns<F, kLanes, 1>(lines, count, y, c, finish);
  for (; columns - c >= kSmall; c += kSmall) FoldColumns<F, kSmall, 1>(lines, count, y, c, finish);
  for (; c < columns; ++c) FoldColumns<F, 1, 1>(lines, count, y, c, finish);
}

void MaxOf(const float* const* lines, int64_t count, float* y, int64_t columns) {
  FoldLines<Largest>(lines, count, y, columns, [](auto x) { return x; });
}
void ScaledSumOf(const float* const* lines, int64_t count, float factor, float* y,
                 int64_t columns) {
  FoldLines<Sum>(lines, count, y, columns, [=](auto x) { return x * factor; });
}

// V vectors of L elements of every window, from element `first` of its pixels on.
template <typename F, int L, int V, typename Finish>
void FoldWindowColumns(const WindowRow& w, int64_t first, Finish finish) {
  for (int64_t o = 0; o < w.outputs; ++o) {
    Vector<L> folded[V];
    for (int v = 0; v < V; ++v) folded[v] = Vector<L>{} + F::kStart;
    for (int64_t r = 0; r < w.row_count; ++r) {
      const float* x = w.rows[r] + o * w.step + first;
      for (int64_t t = 0; t < w.taps; ++t, x += w.tap_step) {
        for (int v = 0; v < V; ++v) folded[v] = F::Join(folded[v], Load<L>(x + v * L));
      }
    }
    for (int v = 0; v < V; ++v) Store<L>(finish(folded[v]), w.y + o * w.width + first + v * L);
  }
}

template <typename F, typename Finish>
void FoldWindows(const WindowRow& w, Finish finish) {
  int64_t c = 0;
  for (; w.width - c >= 4 * kLanes; c += 4 * kLanes) FoldWindowColumns<F, kLanes, 4>(w, c, finish);
  for (; w.width - c >= kLanes; c += kLanes) FoldWindowColumns<F, kLanes, 1>(w, c, finish);
  if constexpr (kLanes > 8) {  // a block of channels
    for (; w.width - c >= 8; c += 8) FoldWindowColumns<F, 8, 1>(w, c, finish);
  }
  for (; w.width - c >= 4; c += 4) FoldWindowColumns<F, 4, 1>(w, c, finish);
  for (; c < w.width; ++c) FoldWindowColumns<F, 1, 1>(w, c, finish);
}

void MaxOfWindows(const WindowRow& w) {
  FoldWindows<Largest>(w, [](auto x) { return x; });
}
void ScaledSumOfWindows(const WindowRow& w) {
  FoldWindows<Sum>(w, [factor = w.factor](auto x) { return x * factor; });
}

template <typename F>
void Fill(Reduce op, Loops* loops) {
  loops->reduce_row[static_cast<size_t>(op)] = RowOf<F>;
  loops->reduce_columns[static_cast<size_t>(op)] = ColumnsOf<F>;
}

}  // namespace

void FillReductions(Loops* loops) {
  Fill<Sum>(Reduce::kSum, loops);
  Fill<SumSquare>(Reduce::kSumSquare, loops);
  Fill<SumAbs>(Reduce::kSumAbs, loops);
  Fill<Largest>(Reduce::kMax, loops);
  Fill<Smallest>(Reduce::kMin, loops);
  loops->max_of = MaxOf;
  loops->scaled_sum_of = ScaledSumOf;
  loops->max_of_windows = MaxOfWindows;
  loops->scaled_sum_of_windows = ScaledSumOfWindows;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
