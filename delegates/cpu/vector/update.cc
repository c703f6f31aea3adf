// Inner loops of optimizers: one pass over a parameter, its gradient and its state.
#include <cmath>

#include "delegates/cpu/vector/parts.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

// The gradient times its factor, within its limits. NaN stays.
inline float GradientAt(const UpdateRun& r, int64_t i) {
  float g = r.gradient[i] * r.factor;
  g = g < -r.clip ? -r.clip : g;
  return g > r.clip ? r.clip : g;
}

void Sgd(const UpdateRun& r) {
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i) {
    const float p = r.in[0][i];
    r.out[0][i] = p - r.rate * (GradientAt(r, i) + r.decay * p);
  }
}

template <bool kNesterov>
void Momentum(const UpdateRun& r) {
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i) {
    const float p = r.in[0][i], g = GradientAt(r, i) + r.decay * p;
    const float m = r.keep1 * r.in[1][i] + r.take1 * g;
    r.out[1][i] = m;
    r.out[0][i] = p - r.rate * (kNesterov ? g + r.keep1 * m : m);
  }
}

void RmsProp(const UpdateRun& r) {
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i) {
    const float p = r.in[0][i], g = GradientAt(r, i) + r.decay * p;
    const float squares = r.keep1 * r.in[1][i] + r.take1 * g * g;
    r.out[1][i] = squares;
    r.out[0][i] = p - r.rate * (g / (std::sqrt(squares) + r.epsilon));
  }
}

template <bool kDecoupled>
void Adam(const UpdateRun& r) {
  const float shrink = kDecoupled ? 1 - r.rate * r.decay : 1, decay = kDecoupled ? 0 : r.decay;
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i) {
    const float p = r.in[0][i], g = GradientAt(r, i) + decay * p;
    const float m = r.in[1][i] + r.take1 * (g - r.in[1][i]);
    const float v = r.keep2 * r.in[2][i] + r.take2 * g * g;
    r.out[1][i] = m;
    r.out[2][i] = v;
    r.out[0][i] = p * shrink - r.rate * r.correct1 * m / (std::sqrt(v) * r.correct2 + r.epsilon);
  }
}

// Advances the moments and leaves the direction of the update in `direction`.
void LambDirection(const UpdateRun& r, float* direction) {
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i) {
    const float p = r.in[0][i], g = GradientAt(r, i);
    const float m = r.in[1][i] + r.take1 * (g - r.in[1][i]);
    const float v = r.keep2 * r.in[2][i] + r.take2 * g * g;
    r.out[1][i] = m;
    r.out[2][i] = v;
    direction[i] = r.correct1 * m / (std::sqrt(v) * r.correct2 + r.epsilon) + r.decay * p;
  }
}

// Moves a parameter against a direction that follows from its moments, which are new.
void LambStep(const UpdateRun& r) {
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i) {
    const float p = r.in[0][i];
    const float u = r.correct1 * r.out[1][i] / (std::sqrt(r.out[2][i]) * r.correct2 + r.epsilon);
    r.out[0][i] = p - r.rate * (u + r.decay * p);
  }
}

void Average(const UpdateRun& r) {
#pragma GCC ivdep
  for (int64_t i = 0; i < r.count; ++i)
    r.out[0][i] = r.in[0][i] + r.take1 * (r.gradient[i] - r.in[0][i]);
}

}  // namespace

void FillUpdates(Loops* loops) {
  const auto set = [&](Updating kind, UpdateLoop loop) {
    loops->update[static_cast<size_t>(kind)] = loop;
  };
  set(Updating::kSgd, Sgd);
  set(Updating::kMomentum, Momentum<false>);
  set(Updating::kNesterov, Momentum<true>);
  set(Updating::kRmsProp, RmsProp);
  set(Updating::kAdam, Adam<false>);
  set(Updating::kAdamW, Adam<true>);
  set(Updating::kLambStep, LambStep);
  set(Updating::kAverage, Average);
  loops->lamb_direction = LambDirection;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
