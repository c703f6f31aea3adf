// Random numbers of one sample: a function of the seed, the epoch and the sample's position in the
// epoch. Any thread or rank that makes the sample draws the same numbers.
#pragma once

#include <cstdint>

namespace msrt {

class SampleRandom {
 public:
  SampleRandom(uint64_t seed, int64_t epoch, int64_t position)
      : state_(
            Mix(Mix(Mix(seed) + static_cast<uint64_t>(epoch)) + static_cast<uint64_t>(position))) {}

  // Independent numbers for a part of the work, such as one augmentation. The parts do not shift
  // each other's numbers.
  SampleRandom Fork(uint64_t stream) const { return SampleRandom(Mix(state_ + ~stream)); }

  uint64_t Next() { return Mix(state_++); }
  // A number in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // A number in [0, limit), of which none is noticeably preferred. Requires limit > 0.
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(
        static_cast<unsigned __int128>(Next()) * static_cast<uint64_t>(limit) >> 64);
  }

 private:
  explicit SampleRandom(uint64_t state) : state_(state) {}

  // SplitMix64.
  static uint64_t Mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

  uint64_t state_;
};

}  // namespace msrt
