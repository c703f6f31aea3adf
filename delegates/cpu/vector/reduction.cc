#include "delegates/cpu/vector/math.h"
#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

// How one element joins what was folded before it. Sums start again after so many elements of a
// lane: their error stays that of a short sum, and the parts are added in double.
struct Sum {
  static constexpr bool kIsSum = true;
  static constexpr float kStart = 0;
  static float Join(float folded, float x) { return folded + x; }
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
  static float Join(float folded, float x) { return x > folded || x != x ? x : folded; }
};
struct Smallest {
  static constexpr bool kIsSum = false;
  static constexpr float kStart = kInfinity;
  static float Join(float folded, float x) { return x < folded || x != x ? x : folded; }
};

constexpr int64_t kLanes = 64;  // independent sums of a row: four vectors of 16
constexpr int64_t kDepth = 64;  // elements of a lane before its sum goes into the double
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
  while (count - i >= kLanes) {
    float lane[kLanes];
    for (int64_t k = 0; k < kLanes; ++k) lane[k] = F::kStart;
    const int64_t rounds = (count - i) / kLanes, depth = rounds < kDepth ? rounds : kDepth;
    for (int64_t r = 0; r < depth; ++r, i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) lane[k] = F::Join(lane[k], x[i + k]);
    }
    for (int64_t k = 0; k < kLanes; ++k) Merge<F>(lane[k], result);
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

// One tile of columns after the other, so that their results stay in registers over all lines.
template <typename F, typename Finish>
void FoldLines(const float* const* lines, int64_t count, float* y, int64_t columns, Finish finish) {
  const auto tile = [&](int64_t first, int64_t n) {
    float part[kColumnTile];
    for (int64_t c = 0; c < n; ++c) part[c] = F::kStart;
    for (int64_t line = 0; line < count; ++line) {
      const float* x = lines[line] + first;
      for (int64_t c = 0; c < n; ++c) part[c] = F::Join(part[c], x[c]);
    }
    for (int64_t c = 0; c < n; ++c) y[first + c] = finish(part[c]);
  };
  int64_t c = 0;
  for (; columns - c >= kColumnTile; c += kColumnTile) tile(c, kColumnTile);
  for (; columns - c >= 16; c += 16) tile(c, 16);
  for (; columns - c >= 8; c += 8) tile(c, 8);
  if (c < columns) tile(c, columns - c);
}

void MaxOf(const float* const* lines, int64_t count, float* y, int64_t columns) {
  FoldLines<Largest>(lines, count, y, columns, [](float x) { return x; });
}
void ScaledSumOf(const float* const* lines, int64_t count, float factor, float* y,
                 int64_t columns) {
  FoldLines<Sum>(lines, count, y, columns, [=](float x) { return x * factor; });
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
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
