#include "delegates/cpu/vector/parts.h"

#include "delegates/cpu/vector/functions.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

template <typename F>
void UnaryOf(const float* x, float* y, int64_t count, float alpha, float beta) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = F::Of(x[i], alpha, beta);
}

void ReluGradient(const float* grad, const float* other, float* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = other[i] > 0 ? grad[i] : 0.0f;
}

template <typename Slope>
void SlopeGradient(const float* grad, const float* other, float* y, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) y[i] = grad[i] * Slope::Of(other[i]);
}

// `Columns` is the number of columns where it is small and fixed, so that a line is one or two
// vectors; 0: as many as there are.
template <typename F, Spread kSpread, int Columns>
void BinaryLinesOf(const BinaryLines& l) {
  const int64_t columns = Columns > 0 ? Columns : l.columns;
  for (int64_t line = 0; line < l.lines; ++line) {
    const float *a = l.a + line * l.a_step, *b = l.b + line * l.b_step;
    float* y = l.y + line * columns;
    const float a0 = a[0], b0 = b[0];
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c)
      y[c] = F::Of(kSpread == Spread::kFirst ? a0 : a[c], kSpread == Spread::kSecond ? b0 : b[c]);
  }
}

template <typename F, Spread kSpread>
void BinaryOf(const BinaryLines& l) {
  if (l.columns == 8) return BinaryLinesOf<F, kSpread, 8>(l);
  if (l.columns == 16) return BinaryLinesOf<F, kSpread, 16>(l);
  BinaryLinesOf<F, kSpread, 0>(l);
}

void AffineByLine(const AffineLines& l) {
  for (int64_t line = 0; line < l.lines; ++line) {
    const float* x = l.x + line * l.columns;
    float* y = l.y + line * l.columns;
    const float center = l.center[line], scale = l.scale[line], shift = l.shift[line];
#pragma GCC ivdep
    for (int64_t c = 0; c < l.columns; ++c) y[c] = (x[c] - center) * scale + shift;
  }
}

template <int Columns>
void AffineByColumnOf(const AffineLines& l) {
  const int64_t columns = Columns > 0 ? Columns : l.columns;
  for (int64_t line = 0; line < l.lines; ++line) {
    const float* x = l.x + line * columns;
    float* y = l.y + line * columns;
#pragma GCC ivdep
    for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - l.center[c]) * l.scale[c] + l.shift[c];
  }
}

void AffineByColumn(const AffineLines& l) {
  if (l.columns == 8) return AffineByColumnOf<8>(l);
  if (l.columns == 16) return AffineByColumnOf<16>(l);
  AffineByColumnOf<0>(l);
}

template <typename F>
void FillBinary(Binary op, Loops* loops) {
  BinaryLoop* row = loops->binary[static_cast<size_t>(op)];
  row[static_cast<size_t>(Spread::kNone)] = BinaryOf<F, Spread::kNone>;
  row[static_cast<size_t>(Spread::kFirst)] = BinaryOf<F, Spread::kFirst>;
  row[static_cast<size_t>(Spread::kSecond)] = BinaryOf<F, Spread::kSecond>;
}

}  // namespace

void FillElementwise(Loops* loops) {
  const auto unary = [&](Unary op, UnaryLoop loop) {
    loops->unary[static_cast<size_t>(op)] = loop;
  };
  unary(Unary::kRelu, UnaryOf<Relu>);
  unary(Unary::kLeakyRelu, UnaryOf<LeakyRelu>);
  unary(Unary::kSigmoid, UnaryOf<SigmoidOf>);
  unary(Unary::kTanh, UnaryOf<TanhOf>);
  unary(Unary::kHardSigmoid, UnaryOf<HardSigmoid>);
  unary(Unary::kHardSwish, UnaryOf<HardSwish>);
  unary(Unary::kClip, UnaryOf<Clip>);
  unary(Unary::kGelu, UnaryOf<Gelu>);
  unary(Unary::kGeluTanh, UnaryOf<GeluTanh>);
  unary(Unary::kElu, UnaryOf<Elu>);
  unary(Unary::kSwish, UnaryOf<Swish>);
  unary(Unary::kMish, UnaryOf<Mish>);
  unary(Unary::kSoftplus, UnaryOf<SoftplusOf>);
  unary(Unary::kExp, UnaryOf<ExpOf>);
  unary(Unary::kLog, UnaryOf<LogOf>);
  unary(Unary::kErf, UnaryOf<ErfOf>);
  unary(Unary::kAbs, UnaryOf<AbsOf>);
  unary(Unary::kNeg, UnaryOf<Neg>);
  unary(Unary::kSqrt, UnaryOf<Sqrt>);
  unary(Unary::kReciprocal, UnaryOf<Reciprocal>);
  unary(Unary::kSquare, UnaryOf<Square>);
  unary(Unary::kRound, UnaryOf<Round>);
  unary(Unary::kFloor, UnaryOf<Floor>);
  unary(Unary::kCeil, UnaryOf<Ceil>);
  FillBinary<Add>(Binary::kAdd, loops);
  FillBinary<Sub>(Binary::kSub, loops);
  FillBinary<Mul>(Binary::kMul, loops);
  FillBinary<Div>(Binary::kDiv, loops);
  FillBinary<Max>(Binary::kMax, loops);
  FillBinary<Min>(Binary::kMin, loops);
  loops->relu_gradient = ReluGradient;
  loops->gelu_gradient = SlopeGradient<GeluSlope>;
  loops->gelu_tanh_gradient = SlopeGradient<GeluTanhSlope>;
  loops->affine_by_line = AffineByLine;
  loops->affine_by_column = AffineByColumn;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
