// Philox4x64-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): random bits as a function of a key and a counter. There is no state, so any thread can
// draw any element of any tensor in any order.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace msrt::reference {

using PhiloxBlock = std::array<uint64_t, 4>;

inline PhiloxBlock Philox(PhiloxBlock counter, std::array<uint64_t, 2> key) {
  constexpr uint64_t kMultiply0 = 0xD2E7470EE14C6C93,
                     kMultiply1 = 0xCA5A826395121157;  // constants of the paper
  constexpr uint64_t kWeyl0 = 0x9E3779B97F4A7C15, kWeyl1 = 0xBB67AE8584CAA73B;
  using Product = unsigned __int128;
  for (int round = 0; round < 10; ++round) {
    const Product p0 = static_cast<Product>(counter[0]) * kMultiply0,
                  p1 = static_cast<Product>(counter[2]) * kMultiply1;
    counter = {static_cast<uint64_t>(p1 >> 64) ^ counter[1] ^ key[0], static_cast<uint64_t>(p1),
               static_cast<uint64_t>(p0 >> 64) ^ counter[3] ^ key[1], static_cast<uint64_t>(p0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// Returns a number in [0, 1), a multiple of 2^-53.
inline double UniformOf(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Returns a number from the standard normal distribution, by the method of Box and Muller; the
// logarithm's argument is in (0, 1].
inline double NormalOf(uint64_t bits0, uint64_t bits1) {
  return std::sqrt(-2 * std::log(1 - UniformOf(bits0))) *
         std::cos(2 * std::numbers::pi * UniformOf(bits1));
}

}  // namespace msrt::reference
