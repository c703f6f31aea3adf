// Vectors of f32 as the compiler's own type, for loops that must keep them in registers. Elsewhere
// plain loops are enough, which the compiler vectorises.
#pragma once

#include <cstring>

namespace msrt::cpu::MSRT_CPU_ISA {

// Lanes of the widest vector.
#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

template <int L>
struct VectorOf {
  typedef float Type __attribute__((vector_size(L * sizeof(float))));
};
template <>
struct VectorOf<1> {
  typedef float Type;
};
template <int L>
using Vector = typename VectorOf<L>::Type;

template <int L>
inline __attribute__((always_inline)) Vector<L> Load(const float* from) {
  Vector<L> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// Subtracts zeros, since adding them would turn -0 into 0.
template <int L>
inline __attribute__((always_inline)) Vector<L> Broadcast(float x) {
  return x - Vector<L>{};
}

template <int L>
inline __attribute__((always_inline)) void Store(Vector<L> v, float* to) {
  std::memcpy(to, &v, sizeof v);
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
