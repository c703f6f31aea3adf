// The transforms of Winograd's F(4x4, 3x3) with the points 0, +-sqrt(1/2), +-sqrt(2) and infinity,
// whose error is about that of a direct sum; with 0, +-1, +-2 it is twice as large.
#include "delegates/cpu/vector/parts.h"
#include "delegates/cpu/vector/product_tile.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;

// Six inputs of a line at the six points.
template <typename V>
inline __attribute__((always_inline)) void InputAtPoints(const V* d, int64_t step, V* t,
                                                         int64_t t_step) {
  const V d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
          d5 = d[5 * step];
  const V even_a = d4 - 2.0f * d2, odd_a = kA * (d3 - 2.0f * d1);
  const V even_b = d4 - 0.5f * d2, odd_b = kB * (d3 - 0.5f * d1);
  t[0] = d0 - 2.5f * d2 + d4;
  t[t_step] = even_a + odd_a;
  t[2 * t_step] = even_a - odd_a;
  t[3 * t_step] = even_b + odd_b;
  t[4 * t_step] = even_b - odd_b;
  t[5 * t_step] = d1 - 2.5f * d3 + d5;
}

// Four outputs of a line from products at the six points.
template <typename V>
inline __attribute__((always_inline)) void OutputOfPoints(const V* m, int64_t step, V* y,
                                                          int64_t y_step) {
  const V sum_a = m[step] + m[2 * step], difference_a = kA * (m[step] - m[2 * step]);
  const V sum_b = m[3 * step] + m[4 * step], difference_b = kB * (m[3 * step] - m[4 * step]);
  y[0] = m[0] + sum_a + sum_b;
  y[y_step] = difference_a + difference_b;
  y[2 * y_step] = 0.5f * sum_a + 2.0f * sum_b;
  y[3 * y_step] = 0.5f * difference_a + 2.0f * difference_b + m[5 * step];
}

template <int L>
void InputTile(const WinogradInput& w, int64_t c) {
  Vector<L> d[36], rows[36], t[36];
  for (int i = 0; i < 36; ++i) d[i] = Load<L>(w.pixels[i] + c);
  for (int r = 0; r < 6; ++r) InputAtPoints(d + 6 * r, 1, rows + 6 * r, 1);
  for (int k = 0; k < 6; ++k) InputAtPoints(rows + k, 6, t + k, 6);
  for (int i = 0; i < 36; ++i) Store<L>(t[i], w.to + i * w.step + c);
}

void Input(const WinogradInput& w) {
  int64_t c = 0;
  for (; c + kLanes <= w.channels; c += kLanes) InputTile<kLanes>(w, c);
  for (; c < w.channels; ++c) InputTile<1>(w, c);
}

template <int L>
Vector<L> OutputTile(const WinogradOutput& w, int64_t c) {
  Vector<L> m[36], rows[24], y[16];
  for (int i = 0; i < 36; ++i) m[i] = Load<L>(w.from + i * w.step + c);
  for (int r = 0; r < 6; ++r) OutputOfPoints(m + 6 * r, 1, rows + 4 * r, 1);
  for (int k = 0; k < 4; ++k) OutputOfPoints(rows + k, 4, y + k, 4);
  const Vector<L> bias = w.bias == nullptr ? Vector<L>{} : Load<L>(w.bias + c);
  Vector<L> flaws = {};  // NaN where a result is not finite
  for (int i = 0; i < 16; ++i) {
    if (w.pixels[i] == nullptr) continue;
    Vector<L> result = y[i] + bias;
    if (w.residuals[i] != nullptr) result += Load<L>(w.residuals[i] + c);
    flaws += result - result;
    Store<L>(result, w.pixels[i] + c);
  }
  return flaws;
}

bool Output(const WinogradOutput& w) {
  Vector<kLanes> flaws = {};
  float flaw = 0;
  int64_t c = 0;
  for (; c + kLanes <= w.channels; c += kLanes) flaws += OutputTile<kLanes>(w, c);
  for (; c < w.channels; ++c) flaw += OutputTile<1>(w, c);
  for (int l = 0; l < kLanes; ++l) flaw += flaws[l];
  return flaw == 0;
}

void Product(const float* a, int64_t a_step, const float* b, float* y, int64_t y_step, int64_t rows,
             int64_t depth) {
  TileRows<2, kLanes>({a, a_step}, {b, 2 * kLanes}, {y, y_step}, rows, depth, false);
}

}  // namespace

void FillWinograd(Loops* loops) {
  loops->winograd_input = Input;
  loops->winograd_output = Output;
  loops->winograd_product = Product;
  loops->winograd_panel = 2 * kLanes;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
