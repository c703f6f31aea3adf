// The transforms of Winograd's F(4x4, 3x3) with the points 0, +-sqrt(1/2), +-sqrt(2) and infinity,
// whose error is about that of a direct sum; with 0, +-1, +-2 it is twice as large.
//
// They are part of MSRT_ARITHMETIC_WINOGRAD4, whose bits are the same on every instruction set: a
// product is part of a fused multiply-add, or the addend of one, with which no compiler fuses it.
#include "delegates/cpu/vector/fma.h"
#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;

// factor * x + y
template <int L>
inline __attribute__((always_inline)) Vector<L> Add(float factor, Vector<L> x, Vector<L> y) {
  return Fma<L>(Broadcast<L>(factor), x, y);
}

// Six inputs of a line at the six points.
template <int L>
inline __attribute__((always_inline)) void InputAtPoints(const Vector<L>* d, int64_t step,
                                                         Vector<L>* t, int64_t t_step) {
  using V = Vector<L>;
  const V d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step],
          d5 = d[5 * step];
  const V even_a = Add<L>(-2.0f, d2, d4), odd_a = Add<L>(-2.0f, d1, d3);
  const V even_b = Add<L>(-0.5f, d2, d4), odd_b = Add<L>(-0.5f, d1, d3);
  t[0] = Add<L>(-2.5f, d2, d0 + d4);
  t[t_step] = Add<L>(kA, odd_a, even_a);
  t[2 * t_step] = Add<L>(-kA, odd_a, even_a);
  t[3 * t_step] = Add<L>(kB, odd_b, even_b);
  t[4 * t_step] = Add<L>(-kB, odd_b, even_b);
  t[5 * t_step] = Add<L>(-2.5f, d3, d1 + d5);
}

// Four outputs of a line from products at the six points.
template <int L>
inline __attribute__((always_inline)) void OutputOfPoints(const Vector<L>* m, int64_t step,
                                                          Vector<L>* y, int64_t y_step) {
  using V = Vector<L>;
  const V sum_a = m[step] + m[2 * step], difference_a = m[step] - m[2 * step];
  const V sum_b = m[3 * step] + m[4 * step], difference_b = m[3 * step] - m[4 * step];
  y[0] = m[0] + sum_a + sum_b;
  y[y_step] = Add<L>(kB, difference_b, Broadcast<L>(kA) * difference_a);
  y[2 * y_step] = Add<L>(0.5f, sum_a, sum_b + sum_b);
  y[3 * y_step] = Add<L>(kA / 2, difference_a, Add<L>(2 * kB, difference_b, m[5 * step]));
}

template <int L>
void InputTile(const WinogradInput& w, int64_t c) {
  Vector<L> d[36], rows[36], t[36];
  for (int i = 0; i < 36; ++i) d[i] = Load<L>(w.pixels[i] + c);
  for (int r = 0; r < 6; ++r) InputAtPoints<L>(d + 6 * r, 1, rows + 6 * r, 1);
  for (int k = 0; k < 6; ++k) InputAtPoints<L>(rows + k, 6, t + k, 6);
  for (int i = 0; i < 36; ++i) Store<L>(t[i], w.to + i * w.step + c);
}

void Input(const WinogradInput& w) {
  int64_t c = 0;
  for (; c + kLanes <= w.channels; c += kLanes) InputTile<kLanes>(w, c);
  for (; c < w.channels; ++c) InputTile<1>(w, c);
}

// Results of a tile, all 16 of them, before bias and residual.
template <int L>
inline __attribute__((always_inline)) void OutputAtPixels(const WinogradOutput& w, int64_t c,
                                                          Vector<L>* y) {
  Vector<L> m[36], rows[24];
  for (int i = 0; i < 36; ++i) m[i] = Load<L>(w.from + i * w.step + c);
  for (int r = 0; r < 6; ++r) OutputOfPoints<L>(m + 6 * r, 1, rows + 4 * r, 1);
  for (int k = 0; k < 4; ++k) OutputOfPoints<L>(rows + k, 4, y + k, 4);
}

template <int L>
Vector<L> OutputTile(const WinogradOutput& w, int64_t c) {
  Vector<L> y[16];
  OutputAtPixels<L>(w, c, y);
  const Vector<L> bias = w.bias == nullptr ? Vector<L>{} : Load<L>(w.bias + c);
  const Vector<L> low = Broadcast<L>(w.low), high = Broadcast<L>(w.high);
  Vector<L> flaws = {};  // NaN where a result is not finite
  for (int i = 0; i < 16; ++i) {
    if (w.pixels[i] == nullptr) continue;
    Vector<L> result = w.bias == nullptr ? y[i] : y[i] + bias;
    if (w.residuals[i] != nullptr) result += Load<L>(w.residuals[i] + c);
    flaws += result - result;
    result = result < low ? low : result;
    Store<L>(result > high ? high : result, w.pixels[i] + c);
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

// The chain of one result. NaN stays NaN, so such a chain ends early.
float Chain(const WinogradDirect& w, int64_t channel) {
  float sum = w.bias == nullptr ? 0 : w.bias[channel];
  const float* weights = w.weights + channel * w.inputs * 9;
  for (int tap = 0; tap < 9 && sum == sum; ++tap) {
    if (w.taps[tap] == nullptr) continue;
    for (int64_t i = 0; i < w.inputs; ++i)
      sum = FusedMultiplyAdd(w.taps[tap][i], weights[i * 9 + tap], sum);
  }
  return sum;
}

void Direct(const WinogradDirect& w) {
  for (int64_t c = 0; c < w.channels; ++c) {
    if (w.y[c] - w.y[c] == 0) continue;
    const float sum = Chain(w, c);
    w.y[c] = w.residual == nullptr ? sum : sum + w.residual[c];
  }
}

}  // namespace

void FillWinograd(Loops* loops) {
  loops->winograd_input = Input;
  loops->winograd_output = Output;
  loops->winograd_direct = Direct;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
